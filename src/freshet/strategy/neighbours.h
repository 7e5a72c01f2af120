#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace freshet::strategy {

// Whom each member may write to, by rank: `ring` (the one before and the one behind), `random` (everybody), `exponential`
// (those 1, 2, 4, … places away, both ways), or a graph as it is written: 0-1,1-2,2-0. Who may write to another may be
// written to by it.
//
// Failure: kInvalid for what is none of these, for ranks that there are not, and for graphs of several pieces.
Result<std::vector<std::vector<int>>> Neighbours(const std::string& graph, int members);

}  // namespace freshet::strategy
