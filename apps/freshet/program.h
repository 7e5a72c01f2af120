#pragma once

#include <string_view>

#include "verb.h"

namespace freshet::cli {

// The door: signals, the log's sink, exit codes; everything else is in the verbs. Once in a process.
int RunProgram(int argc, char** argv, Extras extras = {});

// One line to standard error, with options named as flags.
void WriteError(std::string_view line);

}  // namespace freshet::cli
