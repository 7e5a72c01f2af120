// The sum of tensors, element by element, and an activation with it (residual networks). Parts in another layout than
// the first are brought into its layout.

#include "model/network/onednn/onednn.h"

namespace freshet::model::network {
namespace {

class SumKernel final : public Kernel {
 public:
  explicit SumKernel(const KernelSpec& spec) : count_(spec.layouts[0].floats()) {
    output = spec.layouts[0];
    needs_input = false;
    for (const Layout& layout : spec.layouts) {
      const bool same = DescOf(layout) == DescOf(output);
      to_.push_back(same ? Reorder() : Reorder(ContextOf(spec), DescOf(layout), DescOf(output)));
      from_.push_back(same ? Reorder() : Reorder(ContextOf(spec), DescOf(output), DescOf(layout)));
      if (!same) forward_scratch = Padded(output.bytes);
    }
    if (spec.activation == nullptr) return;
    activation_ = Activation(ContextOf(spec), *spec.activation, DescOf(output));
    needs_output = true;
  }

  void Forward(const Call& call) override {
    std::copy_n(call.inputs[0], count_, call.output);
    for (std::size_t i = 1; i < to_.size(); ++i) {
      const float* part = call.inputs[i];
      if (to_[i]) {
        to_[i].Run(part, call.scratch);
        part = reinterpret_cast<const float*>(call.scratch);
      }
      AddInto(call.output, part, count_);
    }
    if (activation_) activation_.Forward(call.output);
  }

  void Backward(const Call& call) override {
    if (activation_) activation_.Backward(call.output, call.output_gradient);
    for (std::size_t i = 0; i < from_.size(); ++i) {
      if (call.input_gradients[i] == nullptr) continue;
      if (from_[i])
        from_[i].Run(call.output_gradient, call.input_gradients[i]);
      else
        std::copy_n(call.output_gradient, count_, call.input_gradients[i]);
    }
  }

 private:
  const std::size_t count_;
  std::vector<Reorder> to_, from_;
  Activation activation_;
};

}  // namespace

KernelPtr MakeSum(const KernelSpec& spec) { return std::make_unique<SumKernel>(spec); }

}  // namespace freshet::model::network
