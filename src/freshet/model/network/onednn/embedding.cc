// Embedding: each whole number of a sequence becomes a row of a table. Numbers the table does not have become zeros.

#include <algorithm>

#include "model/network/onednn/onednn.h"

namespace freshet::model::network {
namespace {

class EmbeddingKernel final : public Kernel {
 public:
  explicit EmbeddingKernel(const KernelSpec& spec)
      : symbols_(spec.rows * static_cast<std::size_t>(spec.inputs[0][0])),
        width_(static_cast<std::size_t>(spec.layer->outputs)),
        vocabulary_(static_cast<float>(spec.layer->vocabulary)) {
    output = PlainLayout(spec.rows, spec.output);
    if (!spec.layouts[0].plain)
      throw dnnl::error(dnnl_unimplemented, "an embedding reads the input as it comes");  // caught by MakeKernel
  }

  void Forward(const Call& call) override {
    for (std::size_t i = 0; i < symbols_; ++i) {
      float* const to = call.output + i * width_;
      if (const float symbol = call.inputs[0][i]; Known(symbol))
        std::copy_n(call.parameters->Row(call.block, static_cast<std::uint64_t>(symbol)), width_, to);
      else
        std::fill_n(to, width_, 0.0f);
    }
  }

  void Backward(const Call& call) override {
    optimize::BlockGradient& block = call.gradient->blocks[call.block];
    const std::span<float> table = block.memory();
    if (block.empty()) std::fill(table.begin(), table.end(), 0.0f);
    block.SetFull();
    for (std::size_t i = 0; i < symbols_; ++i) {
      const float symbol = call.inputs[0][i];
      if (!Known(symbol)) continue;
      float* const to = &table[static_cast<std::size_t>(symbol) * width_];
      for (std::size_t k = 0; k < width_; ++k) to[k] += call.output_gradient[i * width_ + k];
    }
    if (call.input_gradients[0] != nullptr) std::fill_n(call.input_gradients[0], symbols_, 0.0f);
  }

 private:
  bool Known(float symbol) const { return symbol >= 0 && symbol < vocabulary_; }

  const std::size_t symbols_, width_;
  const float vocabulary_;
};

}  // namespace

KernelPtr MakeEmbedding(const KernelSpec& spec) { return std::make_unique<EmbeddingKernel>(spec); }

}  // namespace freshet::model::network
