#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace freshet::fabric {

// The two short forms in which Slurm writes lists. kInvalid when they are malformed or absurdly long.

// "n[1-3,7],m2" is n1 n2 n3 n7 m2; leading zeros are kept, and there may be several brackets: r[0-1]n[01-16].
Result<std::vector<std::string>> ExpandNodes(std::string_view list);

// "2(x3),1" is 2 2 2 1.
Result<std::vector<int>> ExpandCounts(std::string_view list);

}  // namespace freshet::fabric
