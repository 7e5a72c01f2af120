#include "strategy/group_plan.h"

#include "base/option.h"

namespace freshet::strategy {

Result<GroupPlan> GroupPlan::Make(const StrategyOptions& options, int workers, int rank) {
  if (workers % options.group != 0 && !options.uneven)
    return Error{Code::kInvalid, Str(Option("group"), " ", options.group, " does not divide ", workers, " workers")};
  GroupPlan plan{.groups = (workers + options.group - 1) / options.group, .mine = 0, .members = {}, .leaders = {}};
  const auto begin = [&](int group) {
    return static_cast<int>(fabric::ChunkBegin(static_cast<std::size_t>(workers), group, plan.groups));
  };
  while (begin(plan.mine + 1) <= rank) ++plan.mine;
  for (int member = begin(plan.mine); member < begin(plan.mine + 1); ++member) plan.members.push_back(member);
  for (int group = 0; group < plan.groups; ++group) plan.leaders.push_back(begin(group));
  return plan;
}

}  // namespace freshet::strategy
