#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace freshet::cli {

// Goes on as freshet-mpi, which lies beside this program, with the same arguments. Returns only when that cannot be:
// kInvalid that says how to get it.
Error BecomeMpiProgram(const std::vector<std::string>& arguments);

}  // namespace freshet::cli
