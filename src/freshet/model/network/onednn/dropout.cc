// Dropout: a value is dropped or scaled up by what a counter-based generator says of (seed, layer, step, sample,
// place in the row), so that nothing need be kept for the way back and the batch a row stands in does not matter.
// Places are those of the plain layout, which this kernel makes where it is not given: no layout changes what is
// dropped.

#include "base/random.h"
#include "model/network/onednn/onednn.h"

namespace freshet::model::network {
namespace {

class DropoutKernel final : public Kernel {
 public:
  explicit DropoutKernel(const KernelSpec& spec)
      : layer_(spec.number),
        rows_(spec.rows),
        width_(PlainLayout(spec.rows, spec.inputs[0]).floats() / spec.rows),
        training_(spec.training && spec.layer->rate > 0),
        drops_below_(static_cast<std::uint32_t>(spec.layer->rate * 0x1p32)),
        scale_(static_cast<float>(1 / (1 - spec.layer->rate))) {
    needs_input = false;
    const Desc plain = Plain(DimsOf(spec.rows, spec.inputs[0]));
    output = LayoutOf(plain);
    if (spec.layouts[0].plain) return;
    to_plain_ = Reorder(ContextOf(spec), DescOf(spec.layouts[0]), plain);
    from_plain_ = Reorder(ContextOf(spec), plain, DescOf(spec.layouts[0]));
  }

  void Forward(const Call& call) override {
    if (to_plain_) to_plain_.Run(call.inputs[0], call.output);
    Drop(*call.draw, to_plain_ ? call.output : call.inputs[0], call.output);
  }
  void Backward(const Call& call) override {
    if (call.input_gradients[0] == nullptr) return;
    Drop(*call.draw, call.output_gradient, to_plain_ ? call.output_gradient : call.input_gradients[0]);
    if (from_plain_) from_plain_.Run(call.output_gradient, call.input_gradients[0]);
  }

 private:
  void Drop(const Draw& draw, const float* from, float* to) const {
    if (!training_) {
      if (from != to) std::copy_n(from, rows_ * width_, to);
      return;
    }
    InParallel(rows_, width_ * 8, [&](std::size_t first, std::size_t last) {
      for (std::size_t r = first; r < last; ++r) {
        const std::uint64_t sample = draw.samples == nullptr ? r : draw.samples[r];
        const std::uint64_t key = base::Hash64(draw.seed ^ base::Hash64(draw.step << 16 | layer_));
        for (std::size_t k = 0; k < width_; k += 4) {
          const auto numbers = base::Philox(key, sample, k);
          for (std::size_t i = k; i < std::min(k + 4, width_); ++i)
            to[r * width_ + i] = numbers[i - k] < drops_below_ ? 0 : from[r * width_ + i] * scale_;
        }
      }
    });
  }

  const std::uint64_t layer_;
  const std::size_t rows_, width_;
  const bool training_;
  const std::uint32_t drops_below_;
  const float scale_;
  Reorder to_plain_, from_plain_;
};

}  // namespace

KernelPtr MakeDropout(const KernelSpec& spec) { return std::make_unique<DropoutKernel>(spec); }

}  // namespace freshet::model::network
