// For tests and benchmarks, whose main is not ours.

#include "short_waits.h"

namespace {

// That glibc hands a constructor the arguments of main is its own custom.
__attribute__((constructor)) void Start(int, char** arguments, char**) { freshet::model::WaitShortly(arguments); }

}  // namespace
