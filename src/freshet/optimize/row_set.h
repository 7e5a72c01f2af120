#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace freshet::optimize {

// Rows of one block, each once, in the order they were first added. Clearing costs what was added.
class RowSet {
 public:
  void Add(std::uint32_t row) {
    if (row >= present_.size()) present_.resize(std::max<std::size_t>(row + 1, present_.size() * 3 / 2), 0);
    if (present_[row] != 0) return;
    present_[row] = 1;
    rows_.push_back(row);
  }
  std::span<const std::uint32_t> rows() const { return rows_; }
  void Clear() {
    for (const std::uint32_t row : rows_) present_[row] = 0;
    rows_.clear();
  }

 private:
  std::vector<std::uint8_t> present_;  // by row
  std::vector<std::uint32_t> rows_;
};

// The rows of a whole model: one set for each block of its parameters.
using RowSets = std::vector<RowSet>;

}  // namespace freshet::optimize
