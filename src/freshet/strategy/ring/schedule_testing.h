#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "strategy/ring/schedule.h"

namespace freshet::strategy::ring {

// Follows a schedule in time, by what a micro-batch takes in each stage: how long all of it takes, where messages take no
// time, or nothing when it comes to a halt.
inline std::optional<double> TimeOf(const Schedule& schedule, const std::vector<double>& forward,
                                    const std::vector<double>& backward) {
  std::map<std::pair<int, std::size_t>, double> done[2];  // by stage and micro-batch: when
  std::vector<std::size_t> next(schedule.actions.size(), 0);
  std::vector<double> free(schedule.actions.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t member = 0; member < next.size(); ++member)
      while (next[member] < schedule.actions[member].size()) {
        const Action& action = schedule.actions[member][next[member]];
        const bool turns = action.backward && action.stage + 1 == static_cast<int>(forward.size());
        const int before = action.stage + (action.backward ? (turns ? 0 : 1) : -1);
        double from = 0;
        if (before >= 0) {
          const auto& of = done[action.backward && !turns ? 1 : 0];
          const auto found = of.find({before, action.micro});
          if (found == of.end()) break;
          from = found->second;
        }
        const auto stage = static_cast<std::size_t>(action.stage);
        const double ends = std::max(from, free[member]) + (action.backward ? backward : forward)[stage];
        done[action.backward ? 1 : 0][{action.stage, action.micro}] = free[member] = ends;
        ++next[member];
        moved = true;
      }
  }
  for (std::size_t member = 0; member < next.size(); ++member)
    if (next[member] < schedule.actions[member].size()) return std::nullopt;
  return *std::max_element(free.begin(), free.end());
}

}  // namespace freshet::strategy::ring
