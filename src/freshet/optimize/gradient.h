#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "optimize/parameters.h"

namespace freshet::optimize {

// The gradient of one block, in one of three forms:
// - rows:    a list of touched rows and one vector of `width` floats for each;
// - dense:   all rows, one after another, in memory that somebody lends;
// - factors: the sum over examples i of deltas_i ⊗ inputs_i, for layers whose gradient is such an outer product.
// A dense block that is wanted as factors says so by WantFactors; what is then in it is up to who fills it.
class BlockGradient {
 public:
  enum class Form { kRows, kDense, kFactors };

  explicit BlockGradient(std::uint64_t width = 1) : width_(width) {}
  // Dense over `memory`, which holds rows · width floats and outlives this.
  BlockGradient(std::uint64_t width, std::span<float> memory) : width_(width), form_(Form::kDense), memory_(memory) {}

  std::uint64_t width() const { return width_; }
  Form form() const { return form_; }
  // Nothing was added since Clear. The floats of an empty dense block are not part of the gradient.
  bool empty() const { return form_ == Form::kRows ? touched_.empty() : empty_; }

  // Rows: the vector of a row, zero on first touch. Valid until the next Touch.
  float* Touch(std::uint32_t row) {
    if (row >= slots_.size()) slots_.resize(std::max<std::size_t>(row + 1, slots_.size() * 3 / 2), 0);
    if (slots_[row] == 0) {
      touched_.push_back(row);
      values_.resize(values_.size() + width_, 0.0f);
      slots_[row] = static_cast<std::uint32_t>(touched_.size());
    }
    return values_.data() + (slots_[row] - 1) * width_;
  }
  const float* Find(std::uint32_t row) const {  // null: not touched
    return row < slots_.size() && slots_[row] != 0 ? values_.data() + (slots_[row] - 1) * width_ : nullptr;
  }
  std::span<const std::uint32_t> touched() const { return touched_; }
  std::span<const float> Values(std::size_t position) const { return {values_.data() + position * width_, width_}; }

  // Dense: all floats, of which the gradient is scale() times. Who writes them looks at empty() first (overwrite, or
  // add) and calls SetFull after.
  std::span<float> memory() { return memory_; }
  std::span<const float> memory() const { return memory_; }
  void SetFull() { empty_ = false; }

  // Factors, as they are wanted and handed out; both row by row, `examples` of them.
  void WantFactors(bool wanted) { wants_factors_ = wanted; }
  bool wants_factors() const { return wants_factors_; }
  void AddFactors(std::size_t examples, std::span<const float> inputs, std::span<const float> deltas) {
    form_ = Form::kFactors;
    empty_ = false;
    examples_ += examples;
    inputs_.insert(inputs_.end(), inputs.begin(), inputs.end());
    deltas_.insert(deltas_.end(), deltas.begin(), deltas.end());
  }
  std::size_t examples() const { return examples_; }
  std::span<const float> inputs() const { return inputs_; }
  std::span<const float> deltas() const { return deltas_; }
  // Turns factors into the dense form.
  void Expand();

  // What is in memory(), or the factors, counts this many times.
  float scale() const { return scale_; }
  void Scale(float factor) {
    if (form_ != Form::kRows) {
      scale_ *= factor;
      return;
    }
    for (float& value : values_) value *= factor;
  }
  // Multiplies the scale into the floats.
  void Settle();
  // In proportion to what was touched; keeps the memory.
  void Clear() {
    for (const std::uint32_t row : touched_) slots_[row] = 0;
    touched_.clear();
    values_.clear();
    if (!memory_.empty()) form_ = Form::kDense;
    empty_ = true;
    scale_ = 1;
    examples_ = 0;
    inputs_.clear();
    deltas_.clear();
  }

 private:
  std::uint64_t width_;
  Form form_ = Form::kRows;
  std::vector<std::uint32_t> slots_;  // by row: position in touched_ + 1, or 0
  std::vector<std::uint32_t> touched_;
  std::vector<float> values_;
  std::span<float> memory_;
  bool empty_ = true, wants_factors_ = false;
  float scale_ = 1;
  std::size_t examples_ = 0;
  std::vector<float> inputs_, deltas_;
};

// The gradient of a model: one BlockGradient for each block of its parameters. `buffer`, where there is one, is the
// home of the dense blocks: one row, in which they lie one after another, each 64-byte aligned.
struct Gradient {
  std::shared_ptr<Parameters> buffer;
  std::vector<BlockGradient> blocks;
  // All blocks dense, of the shape of the given ones.
  static Result<Gradient> Dense(const std::vector<Block>& blocks, Memory& memory);
  void Clear() {
    for (BlockGradient& block : blocks) block.Clear();
  }
  void Scale(float factor) {
    for (BlockGradient& block : blocks) block.Scale(factor);
  }
};

}  // namespace freshet::optimize
