#include "optimize/gradient.h"

#include "base/check.h"

namespace freshet::optimize {

void BlockGradient::Expand() {
  if (form_ != Form::kFactors) return;
  CHECK(!memory_.empty());
  const std::size_t outputs = memory_.size() / width_;
  std::fill(memory_.begin(), memory_.end(), 0.0f);
  for (std::size_t i = 0; i < examples_; ++i)
    for (std::size_t row = 0; row < outputs; ++row) {
      const float delta = deltas_[i * outputs + row];
      if (delta == 0) continue;
      const float* const input = &inputs_[i * width_];
      float* const to = &memory_[row * width_];
#pragma omp simd
      for (std::size_t k = 0; k < width_; ++k) to[k] += delta * input[k];
    }
  form_ = Form::kDense;
}

void BlockGradient::Settle() {
  if (form_ == Form::kFactors) {
    for (float& delta : deltas_) delta *= scale_;
  } else if (form_ == Form::kDense && scale_ != 1 && !empty_) {
    for (float& value : memory_) value *= scale_;
  }
  scale_ = 1;
}

Result<Gradient> Gradient::Dense(const std::vector<Block>& blocks, Memory& memory) {
  constexpr std::uint64_t kLine = 16;  // floats of 64 bytes
  const auto floats = [](const Block& block) { return (block.rows * block.width + kLine - 1) / kLine * kLine; };
  std::uint64_t all = 0;
  for (const Block& block : blocks) all += floats(block);
  Gradient gradient;
  gradient.buffer =
      std::make_shared<Parameters>(TRY(Parameters::Create({{.name = "gradient", .rows = 1, .width = all}}, memory)));
  std::uint64_t at = 0;
  for (const Block& block : blocks) {
    gradient.blocks.emplace_back(block.width, gradient.buffer->Values(0).subspan(at, block.rows * block.width));
    at += floats(block);
  }
  return gradient;
}

}  // namespace freshet::optimize
