#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "strategy/grid.h"

namespace freshet::strategy {

// What more a strategy can do by which ratings are trained on in a grid (Strategy::walk): users stay with a member, and
// items walk from member to member, so that each rating is met by one member alone.
//
// Threads, blocking and failure: as Strategy's.
class Walk {
 public:
  virtual ~Walk() = default;

  struct Sides {
    std::size_t first = 0, last = Grid::kSides;
    bool Has(std::size_t side) const { return first <= side && side < last; }
  };
  // Of users, those that stay with this member.
  virtual Sides users() const = 0;

  // A pass, which all members make together: `train` is called for each round, when the items are here that the users of
  // this member meet in it; so many ratings are this member's. What any member had asked for before (Strategy::Ask) is
  // agreed on when it has ended.
  virtual Result<void> Pass(const Grid& grid, std::uint64_t ratings,
                            const std::function<void(std::size_t round)>& train) = 0;
};

}  // namespace freshet::strategy
