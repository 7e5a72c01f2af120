// Softmax, or its logarithm, over the last extent, or over the channels of an image.

#include "model/network/onednn/onednn.h"

namespace freshet::model::network {
namespace {

template <class Forward_, class Backward_>
class SoftmaxKernel final : public Kernel {
 public:
  explicit SoftmaxKernel(const KernelSpec& spec) {
    const Desc desc = DescOf(spec.layouts[0]);
    const int axis = spec.inputs[0].size() == 2 ? 2 : 1;
    const typename Forward_::primitive_desc forward(
        typename Forward_::desc(dnnl::prop_kind::forward_training, desc, axis), Attributes(), ContextOf(spec)->engine);
    output = spec.layouts[0];
    forward_scratch = forward.scratchpad_desc().get_size();
    forward_ = Primitive(ContextOf(spec), Forward_(forward));
    forward_.Bind(DNNL_ARG_SRC, desc);
    forward_.Bind(DNNL_ARG_DST, desc);
    forward_.Bind(DNNL_ARG_SCRATCHPAD, forward.scratchpad_desc());
    const typename Backward_::primitive_desc backward(typename Backward_::desc(desc, desc, axis), Attributes(),
                                                      ContextOf(spec)->engine, forward);
    backward_scratch = backward.scratchpad_desc().get_size();
    backward_ = Primitive(ContextOf(spec), Backward_(backward));
    for (const int argument : {DNNL_ARG_DST, DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_DST}) backward_.Bind(argument, desc);
    backward_.Bind(DNNL_ARG_SCRATCHPAD, backward.scratchpad_desc());
    needs_input = false;
    needs_output = true;
  }

  void Forward(const Call& call) override {
    forward_.Set(DNNL_ARG_SRC, call.inputs[0]);
    forward_.Set(DNNL_ARG_DST, call.output);
    forward_.Set(DNNL_ARG_SCRATCHPAD, call.scratch);
    forward_.Run();
  }

  void Backward(const Call& call) override {
    if (call.input_gradients[0] == nullptr) return;
    backward_.Set(DNNL_ARG_DST, call.output);
    backward_.Set(DNNL_ARG_DIFF_SRC, call.input_gradients[0]);
    backward_.Set(DNNL_ARG_DIFF_DST, call.output_gradient);
    backward_.Set(DNNL_ARG_SCRATCHPAD, call.scratch);
    backward_.Run();
  }

 private:
  Primitive forward_, backward_;
};

}  // namespace

KernelPtr MakeSoftmax(const KernelSpec& spec) {
  if (spec.layer->op == Op::kLogSoftmax)
    return std::make_unique<SoftmaxKernel<dnnl::logsoftmax_forward, dnnl::logsoftmax_backward>>(spec);
  return std::make_unique<SoftmaxKernel<dnnl::softmax_forward, dnnl::softmax_backward>>(spec);
}

}  // namespace freshet::model::network
