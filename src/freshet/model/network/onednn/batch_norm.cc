// Batch normalisation. While training, mean and variance of the batch; their running means are blocks whose gradient
// is the distance from them to what this batch shows (times its rows, as for all gradients of a summed loss).

#include "model/network/onednn/onednn.h"

namespace freshet::model::network {
namespace {

using Forward_ = dnnl::batch_normalization_forward;
using Backward_ = dnnl::batch_normalization_backward;
using Flags = dnnl::normalization_flags;
constexpr std::size_t kScale = 0, kShift = 1, kMean = 2, kVariance = 3;

class BatchNormKernel final : public Kernel {
 public:
  explicit BatchNormKernel(const KernelSpec& spec)
      : rows_(spec.rows), channels_(static_cast<std::size_t>(spec.inputs[0][0])), training_(spec.training) {
    const Desc desc = DescOf(spec.layouts[0]);
    const Desc row({spec.inputs[0][0]}, kFloat, Tag::a);
    const auto epsilon = static_cast<float>(spec.layer->epsilon);
    Flags flags = Flags::use_scale | Flags::use_shift;
    if (!training_) flags |= Flags::use_global_stats;
    if (spec.activation != nullptr) flags |= Flags::fuse_norm_relu;
    const auto prop = training_ ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    const Forward_::primitive_desc forward(Forward_::desc(prop, desc, epsilon, flags), Attributes(),
                                           spec.context->engine);
    output = spec.layouts[0];
    forward_scratch = forward.scratchpad_desc().get_size();
    forward_ = Primitive(spec.context, Forward_(forward));
    for (const int argument : {DNNL_ARG_SCALE, DNNL_ARG_SHIFT, DNNL_ARG_MEAN, DNNL_ARG_VARIANCE})
      forward_.Bind(argument, row);
    forward_.Bind(DNNL_ARG_SRC, desc);
    forward_.Bind(DNNL_ARG_DST, desc);
    forward_.Bind(DNNL_ARG_SCRATCHPAD, forward.scratchpad_desc());
    if (!training_) return;
    Places keep, back;
    mean_ = keep.Take(row.get_size());
    variance_ = keep.Take(row.get_size());
    has_workspace_ = spec.activation != nullptr;
    if (has_workspace_) {
      workspace_ = keep.Take(forward.workspace_desc().get_size());
      forward_.Bind(DNNL_ARG_WORKSPACE, forward.workspace_desc());
    }
    saved = keep.bytes();
    const Backward_::primitive_desc backward(Backward_::desc(dnnl::prop_kind::backward, desc, desc, epsilon, flags),
                                             Attributes(), spec.context->engine, forward);
    scale_place_ = back.Take(row.get_size());
    shift_place_ = back.Take(row.get_size());
    source_place_ = back.Take(desc.get_size());  // when nobody wants the input's gradient
    scratch_place_ = back.Take(backward.scratchpad_desc().get_size());
    backward_scratch = back.bytes();
    backward_ = Primitive(spec.context, Backward_(backward));
    for (const int argument :
         {DNNL_ARG_SCALE, DNNL_ARG_SHIFT, DNNL_ARG_MEAN, DNNL_ARG_VARIANCE, DNNL_ARG_DIFF_SCALE, DNNL_ARG_DIFF_SHIFT})
      backward_.Bind(argument, row);
    for (const int argument : {DNNL_ARG_SRC, DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_DST}) backward_.Bind(argument, desc);
    backward_.Bind(DNNL_ARG_SCRATCHPAD, backward.scratchpad_desc());
    if (has_workspace_) backward_.Bind(DNNL_ARG_WORKSPACE, forward.workspace_desc());
  }

  void Forward(const Call& call) override {
    const auto block = [&](std::size_t b) { return static_cast<const void*>(call.parameters->Row(call.block + b, 0)); };
    forward_.Set(DNNL_ARG_SRC, call.inputs[0]);
    forward_.Set(DNNL_ARG_DST, call.output);
    forward_.Set(DNNL_ARG_SCALE, block(kScale));
    forward_.Set(DNNL_ARG_SHIFT, block(kShift));
    forward_.Set(DNNL_ARG_MEAN, training_ ? call.saved + mean_ : block(kMean));
    forward_.Set(DNNL_ARG_VARIANCE, training_ ? call.saved + variance_ : block(kVariance));
    forward_.Set(DNNL_ARG_SCRATCHPAD, call.scratch);
    if (has_workspace_) forward_.Set(DNNL_ARG_WORKSPACE, call.saved + workspace_);
    forward_.Run();
  }

  void Backward(const Call& call) override {
    auto& blocks = call.gradient->blocks;
    float* const wanted = call.input_gradients[0];
    backward_.Set(DNNL_ARG_SRC, call.inputs[0]);
    backward_.Set(DNNL_ARG_DIFF_DST, call.output_gradient);
    backward_.Set(DNNL_ARG_DIFF_SRC, wanted != nullptr ? static_cast<void*>(wanted) : call.scratch + source_place_);
    backward_.Set(DNNL_ARG_SCALE, call.parameters->Row(call.block + kScale, 0));
    backward_.Set(DNNL_ARG_SHIFT, call.parameters->Row(call.block + kShift, 0));  // asked for, though not used
    backward_.Set(DNNL_ARG_MEAN, call.saved + mean_);
    backward_.Set(DNNL_ARG_VARIANCE, call.saved + variance_);
    backward_.Set(DNNL_ARG_DIFF_SCALE, call.scratch + scale_place_);
    backward_.Set(DNNL_ARG_DIFF_SHIFT, call.scratch + shift_place_);
    backward_.Set(DNNL_ARG_SCRATCHPAD, call.scratch + scratch_place_);
    if (has_workspace_) backward_.Set(DNNL_ARG_WORKSPACE, call.saved + workspace_);
    backward_.Run();
    AddGradient(blocks[call.block + kScale], reinterpret_cast<const float*>(call.scratch + scale_place_));
    AddGradient(blocks[call.block + kShift], reinterpret_cast<const float*>(call.scratch + shift_place_));
    Distance(call, kMean, mean_);
    Distance(call, kVariance, variance_);
  }

 private:
  void Distance(const Call& call, std::size_t b, std::size_t place) const {
    const auto* const seen = reinterpret_cast<const float*>(call.saved + place);
    const float* const running = call.parameters->Row(call.block + b, 0);
    auto* const distance = reinterpret_cast<float*>(call.scratch + scale_place_);
    for (std::size_t c = 0; c < channels_; ++c) distance[c] = static_cast<float>(rows_) * (running[c] - seen[c]);
    AddGradient(call.gradient->blocks[call.block + b], distance);
  }

  const std::size_t rows_, channels_;
  const bool training_;
  bool has_workspace_ = false;
  Primitive forward_, backward_;
  std::size_t mean_ = 0, variance_ = 0, workspace_ = 0, scale_place_ = 0, shift_place_ = 0, source_place_ = 0,
              scratch_place_ = 0;
};

}  // namespace

KernelPtr MakeBatchNorm(const KernelSpec& spec) { return std::make_unique<BatchNormKernel>(spec); }

}  // namespace freshet::model::network
