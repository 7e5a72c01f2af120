#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace freshet::cli {

struct Door;

// The far end of ssh: starts one worker and stays with it. Standard input brings the token, then a byte for each signal
// to pass on; when it ends, because the launcher or the connection is gone, the worker is ended. The exit code becomes
// the worker's.
Result<void> RunAgent(Door& door, const std::vector<std::string>& arguments);

}  // namespace freshet::cli
