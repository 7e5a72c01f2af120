#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace freshet::cli {

struct Door;

// The far end of ssh: starts one worker and stays with it. Standard input brings the token, then a byte for each signal
// to pass on; when it ends, because the launcher or the connection is gone, the worker is ended, and so it is when it
// was frozen for so long. The exit code becomes the worker's.
Result<void> RunAgent(Door& door, base::Clock::Duration frozen, const std::vector<std::string>& arguments);

}  // namespace freshet::cli
