#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "fabric/collectives/sparse.h"
#include "optimize/gradient.h"

namespace freshet::strategy {

// A sum over neighbouring blocks of an update's rows: what is dense of a gradient, one block of parameters after another,
// and of each block of which rows are touched, those.
struct PartialSum {
  std::size_t begin = 0, count = 0;  // blocks of rows; count is a power of two, and begin a multiple of it
  std::vector<float> dense = {};
  std::vector<fabric::SparseRows> touched = {};  // by block of parameters; empty where that is dense

  static PartialSum Of(const optimize::Gradient& gradient, std::size_t block);
  void Give(optimize::Gradient& gradient) const;

  // With the dense values from `first` to `last` alone.
  void Encode(std::string& out, std::size_t first, std::size_t last) const;
  // The next one of these bytes, which it takes off. kCorrupt for what is none of that shape: so many dense values, and
  // rows of these widths (0: dense).
  static Result<PartialSum> Decode(std::string_view& bytes, std::size_t dense, std::span<const std::size_t> widths);
};

// Adds up what blocks of rows give, by a binary tree over the blocks: the bits of the sum depend on the blocks alone, not
// on who has computed which, nor in which portions they were added up before.
class TreeSum {
 public:
  explicit TreeSum(std::vector<std::size_t> widths) : widths_(std::move(widths)) {}  // of touched rows, by block
  // Of blocks behind all that were added before.
  void Add(PartialSum next);
  // As few as blocks that lie so can make: one, when they are all.
  const std::vector<PartialSum>& parts() const { return parts_; }

 private:
  void Merge(PartialSum& left, const PartialSum& right) const;

  const std::vector<std::size_t> widths_;
  std::vector<PartialSum> parts_;  // ascending; no two are halves of one
};

}  // namespace freshet::strategy
