#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace freshet {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s (a bug in freshet; please report it)\n", file, line, condition);
  std::abort();
}

}  // namespace freshet
