#include "strategy/server/balance.h"

#include <algorithm>
#include <numeric>

#include "strategy/server/placement.h"

namespace freshet::strategy::server {
namespace {

constexpr std::size_t kMostMoves = 64;

// Where the largest range that another can have goes: to the one that has least. A range that is too large for any is
// scattered, if that makes the busiest less busy.
bool MoveOne(std::vector<Load>& loads, std::vector<Move>& moves) {
  const auto less = [](const Load& a, const Load& b) { return a.bytes < b.bytes; };
  const auto from = std::max_element(loads.begin(), loads.end(), less);
  const auto to = std::min_element(loads.begin(), loads.end(), less);
  const std::uint64_t worth = from->bytes / 64;
  for (auto range = from->busiest.begin(); range != from->busiest.end() && range->bytes > worth; ++range) {
    const bool fits = to->bytes + range->bytes < from->bytes;
    // Large is what no server could have beside nothing else without more than the others.
    const bool large = range->rows > 1 && range == from->busiest.begin() && 2 * range->bytes > from->bytes;
    if (!fits && !large) continue;
    const Load::Range moved = *range;
    from->busiest.erase(range);
    from->bytes -= moved.bytes;
    if (fits && !large) {
      to->bytes += moved.bytes;
      moves.push_back({moved.group, moved.range, static_cast<int>(to - loads.begin())});
    } else {
      for (Load& each : loads) each.bytes += moved.bytes / loads.size();
      moves.push_back({moved.group, moved.range, Placement::kScattered});
    }
    return true;
  }
  return false;
}

}  // namespace

std::vector<Move> Balance(std::vector<Load> loads) {
  std::vector<Move> moves;
  const std::uint64_t all = std::accumulate(loads.begin(), loads.end(), std::uint64_t{0},
                                            [](std::uint64_t sum, const Load& each) { return sum + each.bytes; });
  const auto uneven = [&](std::uint64_t quarters) {
    const auto most =
        std::max_element(loads.begin(), loads.end(), [](const Load& a, const Load& b) { return a.bytes < b.bytes; });
    return loads.size() > 1 && most->bytes * loads.size() > all + all / quarters;
  };
  if (!uneven(4)) return moves;
  while (moves.size() < kMostMoves && uneven(16) && MoveOne(loads, moves)) {
  }
  return moves;
}

}  // namespace freshet::strategy::server
