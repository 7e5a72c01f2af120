#include "strategy/ring/schedule.h"

#include <algorithm>

#include "base/option.h"

namespace freshet::strategy::ring {
namespace {

constexpr std::string_view kNames[] = {"flush", "1f1b", "interleaved", "stash"};

// What one member does in one direction, with `count` micro-batches in groups as large as the ring: a group through one
// of its stages after the other.
std::vector<Action> InGroups(bool backward, int member, int members, int stages_each, std::size_t count) {
  const auto group = static_cast<std::size_t>(members);
  std::vector<Action> actions;
  for (std::size_t first = 0; first < count; first += group)
    for (int lap = 0; lap < stages_each; ++lap) {
      const int stage = (backward ? stages_each - 1 - lap : lap) * members + member;
      for (std::size_t micro = first; micro < first + group; ++micro) actions.push_back({backward, stage, micro});
    }
  return actions;
}

// Forward actions that come before the first backward one has its turn.
std::size_t Ahead(Order order, int member, int members, int stages_each, std::size_t all) {
  if (order == Order::kFlush) return all;
  const int behind = members - member - 1;
  const int ahead = stages_each == 1 ? behind : 2 * behind + (stages_each - 1) * members;
  return std::min(all, static_cast<std::size_t>(ahead));
}

}  // namespace

Result<Order> OrderOf(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kNames); ++i)
    if (kNames[i] == name) return static_cast<Order>(i);
  return Error{Code::kInvalid,
               Str(Option("pipeline"), ": found ", Quoted(name), ", expected flush, 1f1b, interleaved or stash")};
}

Schedule MakeSchedule(Order order, int members, int stages_each, std::size_t micros) {
  // Of whole groups, which is known to work; those that are not there are left out. They depend on none that stays.
  const auto group = static_cast<std::size_t>(members);
  const std::size_t whole = (micros + group - 1) / group * group;
  Schedule schedule;
  schedule.depth.assign(static_cast<std::size_t>(members * stages_each), 0);
  for (int member = 0; member < members; ++member) {
    const auto forward = InGroups(false, member, members, stages_each, whole);
    const auto backward = InGroups(true, member, members, stages_each, whole);
    std::vector<std::size_t> open(schedule.depth.size(), 0);
    std::vector<Action>& actions = schedule.actions.emplace_back();
    const auto add = [&](const Action& action) {
      if (action.micro >= micros) return;
      actions.push_back(action);
      const auto stage = static_cast<std::size_t>(action.stage);
      action.backward ? --open[stage] : ++open[stage];
      schedule.depth[stage] = std::max(schedule.depth[stage], open[stage]);
    };
    const std::size_t ahead = Ahead(order, member, members, stages_each, forward.size());
    for (std::size_t i = 0; i < ahead; ++i) add(forward[i]);
    for (std::size_t i = ahead; i < forward.size() + ahead; ++i) {
      if (i < forward.size()) add(forward[i]);
      add(backward[i - ahead]);
    }
  }
  return schedule;
}

}  // namespace freshet::strategy::ring
