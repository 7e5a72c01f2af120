#pragma once

#include <cstddef>
#include <cstdint>

#include "base/random.h"

namespace freshet::strategy {

// Ratings in kSides × kSides cells, by a hash of their user (row) and of their item (column). Cells of a diagonal share
// no user and no item, so that they can be trained on at once (Gemulla et al. 2011, "Large-Scale Matrix Factorization
// with Distributed SGD"). A pass is a round for each diagonal, each beside the one before: so the items of a side go from
// each side of users to the next, once round the grid.
struct Grid {
  static constexpr std::size_t kSides = 16;
  std::uint64_t seed = 1;

  std::size_t UserSide(std::uint32_t user) const { return Side(user, 1); }
  std::size_t ItemSide(std::uint32_t item) const { return Side(item, 2); }
  // The side of items that a side of users meets in a round.
  static std::size_t MetBy(std::size_t user_side, std::size_t round) {
    return (user_side + kSides - round % kSides) % kSides;
  }

 private:
  std::size_t Side(std::uint32_t id, std::uint64_t salt) const {
    return base::Hash64(id ^ base::Hash64(seed + salt)) % kSides;
  }
};

}  // namespace freshet::strategy
