#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace freshet::optimize {

// The gradient of one block by the rows it touches: a list of rows and one vector of `width` floats for each. A block
// of which every row is touched is simply a long list.
class BlockGradient {
 public:
  explicit BlockGradient(std::uint64_t width = 1) : width_(width) {}

  // The vector of a row, zero on first touch. Valid until the next Touch.
  float* Touch(std::uint32_t row) {
    if (row >= slots_.size()) slots_.resize(std::max<std::size_t>(row + 1, slots_.size() * 3 / 2), 0);
    if (slots_[row] == 0) {
      touched_.push_back(row);
      values_.resize(values_.size() + width_, 0.0f);
      slots_[row] = static_cast<std::uint32_t>(touched_.size());
    }
    return values_.data() + (slots_[row] - 1) * width_;
  }
  std::span<const std::uint32_t> touched() const { return touched_; }
  std::span<const float> Values(std::size_t position) const { return {values_.data() + position * width_, width_}; }
  std::uint64_t width() const { return width_; }
  void Scale(float factor) {
    for (float& value : values_) value *= factor;
  }
  // In proportion to what was touched; keeps the memory.
  void Clear() {
    for (const std::uint32_t row : touched_) slots_[row] = 0;
    touched_.clear();
    values_.clear();
  }

 private:
  std::uint64_t width_;
  std::vector<std::uint32_t> slots_;  // by row: position in touched_ + 1, or 0
  std::vector<std::uint32_t> touched_;
  std::vector<float> values_;
};

// The gradient of a model: one BlockGradient for each block of its parameters.
struct Gradient {
  std::vector<BlockGradient> blocks;
  void Clear() {
    for (BlockGradient& block : blocks) block.Clear();
  }
  void Scale(float factor) {
    for (BlockGradient& block : blocks) block.Scale(factor);
  }
};

}  // namespace freshet::optimize
