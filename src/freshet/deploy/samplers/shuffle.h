#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/random.h"

namespace freshet::deploy {

// The numbers 0, 1, …, size - 1 in random order, one at a time. Time and memory are in proportion to the numbers taken,
// not to size: it is the shuffle of Fisher and Yates, of which only the places that were swapped are written down.
class LazyShuffle {
 public:
  // `expected` numbers will be taken, or about so many.
  LazyShuffle(std::uint64_t size, std::uint64_t expected);

  std::uint64_t left() const { return size_ - taken_; }
  std::uint64_t Next(base::Random& random);  // left() > 0

 private:
  using Cell = std::pair<std::uint64_t, std::uint64_t>;  // where, and the number there
  Cell& Find(std::uint64_t where);                       // or the empty one to put it
  std::uint64_t At(std::uint64_t where);
  void Put(std::uint64_t where, std::uint64_t number);

  const std::uint64_t size_;
  std::uint64_t taken_ = 0;
  std::vector<Cell> cells_;  // a hash table with linear probing, at most half full; its size is a power of two
  std::size_t used_ = 0;
};

// Brings numbers into random order.
void Shuffle(std::vector<std::uint64_t>& numbers, base::Random& random);

}  // namespace freshet::deploy
