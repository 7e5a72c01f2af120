#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace freshet::cli {

// Goes on as another program of this name that lies beside this one (freshet-mpi, freshet-sim), with the same arguments.
// Returns only when that cannot be: kInvalid that says `what` needs it, and `how` to get it.
Error BecomeSibling(const std::string& name, const std::vector<std::string>& arguments, std::string_view what,
                    std::string_view how);

}  // namespace freshet::cli
