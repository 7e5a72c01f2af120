#pragma once

#include <vector>

#include "fabric/collectives/collectives.h"

namespace freshet::strategy {

// Sums of all members' numbers, each in the order of ranks: the same bits for all, and every time.
Result<std::vector<double>> SumInOrder(fabric::Collectives& collectives, const std::vector<double>& mine);

}  // namespace freshet::strategy
