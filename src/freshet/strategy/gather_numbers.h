#pragma once

#include <cstdint>
#include <vector>

#include "fabric/collectives/collectives.h"

namespace freshet::strategy {

// What each member tells, by rank; perhaps not as many numbers as another.
Result<std::vector<std::vector<std::uint64_t>>> GatherNumbers(fabric::Collectives& collectives,
                                                              const std::vector<std::uint64_t>& mine);

}  // namespace freshet::strategy
