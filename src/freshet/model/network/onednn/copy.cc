// A copy in the plain layout: where a tensor leaves the network, or is flattened.

#include "model/network/onednn/onednn.h"

namespace freshet::model::network {
namespace {

class CopyKernel final : public Kernel {
 public:
  explicit CopyKernel(const KernelSpec& spec) {
    const Desc plain = Plain(DimsOf(spec.rows, spec.inputs[0]));
    forward_ = Reorder(ContextOf(spec), DescOf(spec.layouts[0]), plain);
    backward_ = Reorder(ContextOf(spec), plain, DescOf(spec.layouts[0]));
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

KernelPtr MakeCopy(const KernelSpec& spec) { return std::make_unique<CopyKernel>(spec); }

}  // namespace freshet::model::network
