#pragma once

#include <string_view>

#include "verb.h"

namespace freshet::cli {

// The door: signals, the log's sink, exit codes; everything else is in the verbs. Once in a process. `connect_mpi` is
// what freshet-mpi has and freshet has not.
int RunProgram(int argc, char** argv, ConnectMpi connect_mpi = {});

// One line to standard error, with options named as flags.
void WriteError(std::string_view line);

}  // namespace freshet::cli
