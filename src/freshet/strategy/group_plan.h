#pragma once

#include <vector>

#include "strategy/strategy.h"

namespace freshet::strategy {

// Which of the workers make up a group: neighbours by rank, as many as the group is to have, or a few less where its size
// does not divide the workers and that is allowed.
struct GroupPlan {
  int groups = 1, mine = 0;  // of the member it was made for
  std::vector<int> members;  // of that group, ascending
  std::vector<int> leaders;  // the first of each group

  static Result<GroupPlan> Make(const StrategyOptions& options, int workers, int rank);
};

}  // namespace freshet::strategy
