// The extents of a row in another order.

#include "model/network/onednn/onednn.h"

namespace freshet::model::network {
namespace {

class TransposeKernel final : public Kernel {
 public:
  explicit TransposeKernel(const KernelSpec& spec) {
    // The output as the input counts it: extent d of the input lies at stride[d] there.
    const Dims dims = DimsOf(spec.rows, spec.inputs[0]);
    Dims strides(dims.size(), 1);
    std::int64_t step = 1;
    for (std::size_t d = spec.layer->shape.size(); d-- > 0;) {
      strides[static_cast<std::size_t>(spec.layer->shape[d]) + 1] = step;
      step *= spec.output[d];
    }
    strides[0] = step;
    const Desc turned(dims, kFloat, strides);
    forward_ = Reorder(ContextOf(spec), DescOf(spec.layouts[0]), turned);
    backward_ = Reorder(ContextOf(spec), turned, DescOf(spec.layouts[0]));
    output = PlainLayout(spec.rows, spec.output);
    needs_input = false;
  }
  void Forward(const Call& call) override { forward_.Run(call.inputs[0], call.output); }
  void Backward(const Call& call) override {
    if (call.input_gradients[0] != nullptr) backward_.Run(call.output_gradient, call.input_gradients[0]);
  }

 private:
  Reorder forward_, backward_;
};

}  // namespace

KernelPtr MakeTranspose(const KernelSpec& spec) { return std::make_unique<TransposeKernel>(spec); }

}  // namespace freshet::model::network
