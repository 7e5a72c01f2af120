// y = scale · x + shift, with numbers of their own for every place, for some extents, or one for all. In the plain
// layout: what scales channels behind a convolution is batch norm's work, this is for what comes from elsewhere.

#include "model/network/onednn/broadcast.h"

namespace freshet::model::network {
namespace {

class AffineKernel final : public Kernel {
 public:
  explicit AffineKernel(const KernelSpec& spec)
      : rows_(spec.rows), places_(Repeated(spec.inputs[0], spec.layer->shape)), in_(spec, 0) {
    output = PlainLayout(spec.rows, spec.output);
    for (const std::uint32_t place : places_) numbers_ = std::max<std::size_t>(numbers_, place + 1);
    forward_scratch = in_.bytes();
    backward_scratch = 2 * in_.bytes();
  }

  void Forward(const Call& call) override {
    const float* const x = in_.Read(call.inputs[0], call.scratch);
    const float* const scale = call.parameters->Row(call.block, 0);
    const float* const shift = call.parameters->Row(call.block + 1, 0);
    InParallel(rows_, places_.size(), [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first * places_.size(); i < last * places_.size();)
        for (const std::uint32_t k : places_) {
          call.output[i] = scale[k] * x[i] + shift[k];
          ++i;
        }
    });
  }

  void Backward(const Call& call) override {
    const float* const x = in_.Read(call.inputs[0], call.scratch + in_.bytes());
    const float* const dy = call.output_gradient;
    std::vector<float> of_scale(numbers_, 0.0f), of_shift(numbers_, 0.0f);
    for (std::size_t i = 0; i < rows_ * places_.size();)
      for (const std::uint32_t k : places_) {
        of_scale[k] += dy[i] * x[i];
        of_shift[k] += dy[i];
        ++i;
      }
    AddGradient(call.gradient->blocks[call.block], of_scale.data());
    AddGradient(call.gradient->blocks[call.block + 1], of_shift.data());
    if (call.input_gradients[0] == nullptr) return;
    const float* const scale = call.parameters->Row(call.block, 0);
    float* const dx = in_.Place(call.input_gradients[0], call.scratch);
    InParallel(rows_, places_.size(), [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first * places_.size(); i < last * places_.size();)
        for (const std::uint32_t k : places_) {
          dx[i] = scale[k] * dy[i];
          ++i;
        }
    });
    in_.Give(call.scratch, call.input_gradients[0]);
  }

 private:
  const std::size_t rows_;
  const std::vector<std::uint32_t> places_;
  PlainTensor in_;
  std::size_t numbers_ = 0;
};

}  // namespace

KernelPtr MakeAffine(const KernelSpec& spec) { return std::make_unique<AffineKernel>(spec); }

}  // namespace freshet::model::network
