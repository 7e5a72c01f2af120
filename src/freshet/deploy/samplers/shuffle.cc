#include "deploy/samplers/shuffle.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace freshet::deploy {
namespace {

constexpr std::uint64_t kEmpty = ~std::uint64_t{0};

}  // namespace

LazyShuffle::LazyShuffle(std::uint64_t size, std::uint64_t expected)
    : size_(size), cells_(std::bit_ceil(2 * std::min(size, expected) + 2), Cell{kEmpty, 0}) {
  CHECK(size < kEmpty);
}

std::uint64_t LazyShuffle::Next(base::Random& random) {
  CHECK(taken_ < size_);
  const std::uint64_t drawn = taken_ + random.Below(size_ - taken_);
  const std::uint64_t number = At(drawn);
  if (drawn != taken_) Put(drawn, At(taken_));
  ++taken_;
  return number;
}

LazyShuffle::Cell& LazyShuffle::Find(std::uint64_t where) {
  const std::size_t mask = cells_.size() - 1;
  std::size_t i = base::Hash64(where) & mask;
  while (cells_[i].first != kEmpty && cells_[i].first != where) i = (i + 1) & mask;
  return cells_[i];
}

std::uint64_t LazyShuffle::At(std::uint64_t where) {
  const Cell& cell = Find(where);
  return cell.first == where ? cell.second : where;
}

void LazyShuffle::Put(std::uint64_t where, std::uint64_t number) {
  Cell& cell = Find(where);
  if (cell.first == where) {
    cell.second = number;
    return;
  }
  cell = {where, number};
  if (2 * ++used_ < cells_.size()) return;
  std::vector<Cell> old(2 * cells_.size(), Cell{kEmpty, 0});
  old.swap(cells_);
  for (const Cell& moved : old)
    if (moved.first != kEmpty) Find(moved.first) = moved;
}

void Shuffle(std::vector<std::uint64_t>& numbers, base::Random& random) {
  for (std::size_t left = numbers.size(); left > 1; --left) std::swap(numbers[left - 1], numbers[random.Below(left)]);
}

}  // namespace freshet::deploy
