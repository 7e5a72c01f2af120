// Pools: largest or mean of each window; the mean of a whole channel is a window as large as the image.

#include "model/network/onednn/onednn.h"

namespace freshet::model::network {
namespace {

using Forward_ = dnnl::pooling_forward;
using Backward_ = dnnl::pooling_backward;

class PoolKernel final : public Kernel {
 public:
  explicit PoolKernel(const KernelSpec& spec) {
    const Layer& layer = *spec.layer;
    const Shape &in = spec.inputs[0], &out = spec.output;
    const bool whole = layer.op == Op::kGlobalAveragePool;
    Dims kernel{in[1], in[2]}, strides{1, 1}, pad{0, 0}, pad_end{0, 0};
    for (std::size_t d = 0; d < 2 && !whole; ++d) {
      kernel[d] = layer.kernel[d];
      strides[d] = layer.stride[d];
      pad[d] = layer.pad[d];
      // Just as much as the last window needs, which may hang over (ceil) or leave a rest.
      pad_end[d] = (out[d + 1] - 1) * strides[d] + kernel[d] - in[d + 1] - pad[d];
    }
    const auto kind = layer.op == Op::kMaxPool ? dnnl::algorithm::pooling_max
                      : layer.include_padding  ? dnnl::algorithm::pooling_avg_include_padding
                                               : dnnl::algorithm::pooling_avg_exclude_padding;
    const auto prop = spec.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    const Desc source = DescOf(spec.layouts[0]);
    const Forward_::primitive_desc forward(
        Forward_::desc(prop, kind, source, Any(DimsOf(spec.rows, out)), strides, kernel, pad, pad_end), Attributes(),
        ContextOf(spec)->engine);
    output = LayoutOf(forward.dst_desc());
    forward_scratch = forward.scratchpad_desc().get_size();
    forward_ = Primitive(ContextOf(spec), Forward_(forward));
    forward_.Bind(DNNL_ARG_SRC, source);
    forward_.Bind(DNNL_ARG_DST, forward.dst_desc());
    forward_.Bind(DNNL_ARG_SCRATCHPAD, forward.scratchpad_desc());
    has_workspace_ = spec.training && layer.op == Op::kMaxPool;
    if (has_workspace_) forward_.Bind(DNNL_ARG_WORKSPACE, forward.workspace_desc());
    needs_input = false;
    if (!spec.training) return;
    if (has_workspace_) saved = forward.workspace_desc().get_size();
    const Backward_::primitive_desc backward(
        Backward_::desc(kind, source, forward.dst_desc(), strides, kernel, pad, pad_end), Attributes(),
        ContextOf(spec)->engine, forward);
    backward_scratch = backward.scratchpad_desc().get_size();
    backward_ = Primitive(ContextOf(spec), Backward_(backward));
    backward_.Bind(DNNL_ARG_DIFF_SRC, source);
    backward_.Bind(DNNL_ARG_DIFF_DST, forward.dst_desc());
    backward_.Bind(DNNL_ARG_SCRATCHPAD, backward.scratchpad_desc());
    if (has_workspace_) backward_.Bind(DNNL_ARG_WORKSPACE, forward.workspace_desc());
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

KernelPtr MakePool(const KernelSpec& spec) { return std::make_unique<PoolKernel>(spec); }

}  // namespace freshet::model::network
