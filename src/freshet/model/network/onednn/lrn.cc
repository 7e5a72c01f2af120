// Local response normalisation across channels.

#include "model/network/onednn/onednn.h"

namespace freshet::model::network {
namespace {

using Forward_ = dnnl::lrn_forward;
using Backward_ = dnnl::lrn_backward;
constexpr auto kAcross = dnnl::algorithm::lrn_across_channels;

class LrnKernel final : public Kernel {
 public:
  explicit LrnKernel(const KernelSpec& spec) {
    const Layer& layer = *spec.layer;
    const auto alpha = static_cast<float>(layer.alpha), beta = static_cast<float>(layer.beta),
               k = static_cast<float>(layer.k);
    const Desc desc = DescOf(spec.layouts[0]);
    const auto prop = spec.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    const Forward_::primitive_desc forward(Forward_::desc(prop, kAcross, desc, layer.size, alpha, beta, k),
                                           Attributes(), ContextOf(spec)->engine);
    output = spec.layouts[0];
    forward_scratch = forward.scratchpad_desc().get_size();
    forward_ = Primitive(ContextOf(spec), Forward_(forward));
    forward_.Bind(DNNL_ARG_SRC, desc);
    forward_.Bind(DNNL_ARG_DST, desc);
    forward_.Bind(DNNL_ARG_SCRATCHPAD, forward.scratchpad_desc());
    if (!spec.training) return;
    const Desc workspace = forward.workspace_desc();
    has_workspace_ = workspace.get_size() > 0;
    saved = workspace.get_size();
    if (has_workspace_) forward_.Bind(DNNL_ARG_WORKSPACE, workspace);
    const Backward_::primitive_desc backward(Backward_::desc(kAcross, desc, desc, layer.size, alpha, beta, k),
                                             Attributes(), ContextOf(spec)->engine, forward);
    backward_scratch = backward.scratchpad_desc().get_size();
    backward_ = Primitive(ContextOf(spec), Backward_(backward));
    backward_.Bind(DNNL_ARG_SRC, desc);
    backward_.Bind(DNNL_ARG_DIFF_SRC, desc);
    backward_.Bind(DNNL_ARG_DIFF_DST, desc);
    backward_.Bind(DNNL_ARG_SCRATCHPAD, backward.scratchpad_desc());
    if (has_workspace_) backward_.Bind(DNNL_ARG_WORKSPACE, workspace);
  }

  void Forward(const Call& call) override {
    forward_.Set(DNNL_ARG_SRC, call.inputs[0]);
    forward_.Set(DNNL_ARG_DST, call.output);
    forward_.Set(DNNL_ARG_SCRATCHPAD, call.scratch);
    if (has_workspace_) forward_.Set(DNNL_ARG_WORKSPACE, call.saved);
    forward_.Run();
  }

  void Backward(const Call& call) override {
    if (call.input_gradients[0] == nullptr) return;
    backward_.Set(DNNL_ARG_SRC, call.inputs[0]);
    backward_.Set(DNNL_ARG_DIFF_SRC, call.input_gradients[0]);
    backward_.Set(DNNL_ARG_DIFF_DST, call.output_gradient);
    backward_.Set(DNNL_ARG_SCRATCHPAD, call.scratch);
    if (has_workspace_) backward_.Set(DNNL_ARG_WORKSPACE, call.saved);
    backward_.Run();
  }

 private:
  Primitive forward_, backward_;
  bool has_workspace_ = false;
};

}  // namespace

KernelPtr MakeLrn(const KernelSpec& spec) { return std::make_unique<LrnKernel>(spec); }

}  // namespace freshet::model::network
