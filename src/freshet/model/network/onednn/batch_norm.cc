// Batch normalisation. While training, mean and variance of the batch; their running means are blocks whose gradient
// is the distance from them to what this batch shows (times its rows, as for all gradients of a summed loss).
//
// Together with other workers, mean and variance are those of all their rows: each computes its own, they are merged
// (about the running mean, so that little cancels), and the kernels are told them. A kernel that is told its statistics
// takes them for constants; what is missing in the gradient of its input then is, with dy the gradient that comes in,
// x' the normalised input and M the values of a channel over all workers,
//   - scale / (deviation · M) · (Σ dy + x' Σ dy x')
// whose sums, over this worker's rows, are the gradients of shift and scale. It is itself a normalisation of the input,
// with another scale and shift.

#include <algorithm>
#include <cmath>

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
      : rows_(spec.rows),
        channels_(static_cast<std::size_t>(spec.inputs[0][0])),
        training_(spec.training),
        together_(spec.together),
        epsilon_(static_cast<float>(spec.layer->epsilon)) {
    for (std::size_t i = 1; i < spec.inputs[0].size(); ++i) places_ *= static_cast<std::size_t>(spec.inputs[0][i]);
    const Desc desc = DescOf(spec.layouts[0]);
    const Desc row({spec.inputs[0][0]}, kFloat, Tag::a);
    floats_ = desc.get_size() / sizeof(float);
    Flags flags = Flags::use_scale | Flags::use_shift;
    if (!training_ || together_) flags |= Flags::use_global_stats;
    if (spec.activation != nullptr) flags |= Flags::fuse_norm_relu;
    const auto prop = training_ ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    const Forward_::primitive_desc forward(Forward_::desc(prop, desc, epsilon_, flags), Attributes(),
                                           ContextOf(spec)->engine);
    output = spec.layouts[0];
    Places front;
    std::size_t front_bytes = forward.scratchpad_desc().get_size();
    if (together_) {
      own_ = Normalisation(spec, desc, row, dnnl::prop_kind::forward_training, Flags::use_scale | Flags::use_shift,
                           front_bytes);
      sums_ = front.Take((2 * channels_ + 1) * sizeof(float));
    }
    front_scratch_ = front.Take(front_bytes);
    forward_scratch = front.bytes();
    forward_ = Primitive(ContextOf(spec), Forward_(forward));
    Bind(forward_, desc, row, forward.scratchpad_desc());
    if (!training_) return;
    Places keep, back;
    mean_ = keep.Take(row.get_size());
    variance_ = keep.Take(row.get_size());
    if (together_) count_ = keep.Take(sizeof(float));
    has_workspace_ = spec.activation != nullptr;
    if (has_workspace_) {
      workspace_ = keep.Take(forward.workspace_desc().get_size());
      forward_.Bind(DNNL_ARG_WORKSPACE, forward.workspace_desc());
    }
    saved = keep.bytes();
    const Backward_::primitive_desc backward(Backward_::desc(dnnl::prop_kind::backward, desc, desc, epsilon_, flags),
                                             Attributes(), ContextOf(spec)->engine, forward);
    std::size_t back_bytes = backward.scratchpad_desc().get_size();
    if (together_) {
      missing_ = Normalisation(spec, desc, row, dnnl::prop_kind::forward_inference,
                               Flags::use_scale | Flags::use_shift | Flags::use_global_stats, back_bytes);
      back_sums_ = back.Take(2 * channels_ * sizeof(float));
    }
    scale_place_ = back.Take(row.get_size());
    shift_place_ = back.Take(row.get_size());
    source_place_ = back.Take(desc.get_size());  // when nobody wants the input's gradient; else what is missing in it
    scratch_place_ = back.Take(back_bytes);
    backward_scratch = back.bytes();
    backward_ = Primitive(ContextOf(spec), Backward_(backward));
    for (const int argument :
         {DNNL_ARG_SCALE, DNNL_ARG_SHIFT, DNNL_ARG_MEAN, DNNL_ARG_VARIANCE, DNNL_ARG_DIFF_SCALE, DNNL_ARG_DIFF_SHIFT})
      backward_.Bind(argument, row);
    for (const int argument : {DNNL_ARG_SRC, DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_DST}) backward_.Bind(argument, desc);
    backward_.Bind(DNNL_ARG_SCRATCHPAD, backward.scratchpad_desc());
    if (has_workspace_) backward_.Bind(DNNL_ARG_WORKSPACE, forward.workspace_desc());
  }

  void Forward(const Call& call) override {
    if (together_) MergeStatistics(call);
    const auto block = [&](std::size_t b) { return static_cast<const void*>(call.parameters->Row(call.block + b, 0)); };
    if (has_workspace_) forward_.Set(DNNL_ARG_WORKSPACE, call.saved + workspace_);
    Normalise(forward_, call.inputs[0], call.output, block(kScale), block(kShift),
              training_ ? call.saved + mean_ : block(kMean), training_ ? call.saved + variance_ : block(kVariance),
              call.scratch + front_scratch_);
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
    AddGradient(blocks[call.block + kScale], Floats(call.scratch, scale_place_));
    AddGradient(blocks[call.block + kShift], Floats(call.scratch, shift_place_));
    if (together_) AddMissing(call, wanted);
    Distance(call, kMean, mean_);
    Distance(call, kVariance, variance_);
  }

 private:
  static float* Floats(std::byte* memory, std::size_t place) { return reinterpret_cast<float*>(memory + place); }

  static void Bind(Primitive& primitive, const Desc& desc, const Desc& row, const Desc& scratch) {
    for (const int argument : {DNNL_ARG_SCALE, DNNL_ARG_SHIFT, DNNL_ARG_MEAN, DNNL_ARG_VARIANCE})
      primitive.Bind(argument, row);
    primitive.Bind(DNNL_ARG_SRC, desc);
    primitive.Bind(DNNL_ARG_DST, desc);
    primitive.Bind(DNNL_ARG_SCRATCHPAD, scratch);
  }

  // One more normalisation of the input; its scratch shares the place of another's, which may have to be larger.
  Primitive Normalisation(const KernelSpec& spec, const Desc& desc, const Desc& row, dnnl::prop_kind prop, Flags flags,
                          std::size_t& scratch_bytes) const {
    const Forward_::primitive_desc made(Forward_::desc(prop, desc, epsilon_, flags), Attributes(),
                                        ContextOf(spec)->engine);
    Primitive primitive(ContextOf(spec), Forward_(made));
    Bind(primitive, desc, row, made.scratchpad_desc());
    scratch_bytes = std::max(scratch_bytes, made.scratchpad_desc().get_size());
    return primitive;
  }

  static void Normalise(Primitive& primitive, const void* from, void* to, const void* scale, const void* shift,
                        const void* mean, const void* variance, void* scratch) {
    primitive.Set(DNNL_ARG_SRC, from);
    primitive.Set(DNNL_ARG_DST, to);
    primitive.Set(DNNL_ARG_SCALE, scale);
    primitive.Set(DNNL_ARG_SHIFT, shift);
    primitive.Set(DNNL_ARG_MEAN, mean);
    primitive.Set(DNNL_ARG_VARIANCE, variance);
    primitive.Set(DNNL_ARG_SCRATCHPAD, scratch);
    primitive.Run();
  }

  // Leaves the statistics of all workers' rows, and their number, in `saved`.
  void MergeStatistics(const Call& call) {
    float* const mean = Floats(call.saved, mean_);
    float* const variance = Floats(call.saved, variance_);
    const float* const running = call.parameters->Row(call.block + kMean, 0);
    // What it makes of the input is not looked at: the output is its place only until the statistics are known.
    Normalise(own_, call.inputs[0], call.output, call.parameters->Row(call.block + kScale, 0),
              call.parameters->Row(call.block + kShift, 0), mean, variance, call.scratch + front_scratch_);
    const std::span<float> sums(Floats(call.scratch, sums_), 2 * channels_ + 1);
    std::fill(sums.begin(), sums.end(), 0.0f);
    if (call.meeting->counts) {
      const auto rows = static_cast<float>(rows_);
      for (std::size_t c = 0; c < channels_; ++c) {
        const float off = mean[c] - running[c];
        sums[c] = rows * off;
        sums[channels_ + c] = rows * (variance[c] + off * off);
      }
      sums.back() = rows;
    }
    call.meeting->sum(sums);
    const float all = *Floats(call.saved, count_) = sums.back();
    for (std::size_t c = 0; c < channels_; ++c) {
      const float off = sums[c] / all;
      mean[c] = running[c] + off;
      variance[c] = std::max(sums[channels_ + c] / all - off * off, 0.0f);
    }
  }

  // Adds what the gradient of the input lacks.
  void AddMissing(const Call& call, float* wanted) {
    const std::span<float> sums(Floats(call.scratch, back_sums_), 2 * channels_);
    float* const scale = Floats(call.scratch, scale_place_);
    float* const shift = Floats(call.scratch, shift_place_);
    std::fill(sums.begin(), sums.end(), 0.0f);
    if (call.meeting->counts) {
      std::copy_n(scale, channels_, sums.begin());
      std::copy_n(shift, channels_, sums.begin() + static_cast<std::ptrdiff_t>(channels_));
    }
    call.meeting->sum(sums);
    if (wanted == nullptr) return;
    const float* const variance = Floats(call.saved, variance_);
    const float* const gamma = call.parameters->Row(call.block + kScale, 0);
    const float values = *Floats(call.saved, count_) * static_cast<float>(places_);
    for (std::size_t c = 0; c < channels_; ++c) {
      const float share = -gamma[c] / (std::sqrt(variance[c] + epsilon_) * values);
      scale[c] = share * sums[c];
      shift[c] = share * sums[channels_ + c];
    }
    float* const missing = Floats(call.scratch, source_place_);
    Normalise(missing_, call.inputs[0], missing, scale, shift, call.saved + mean_, variance,
              call.scratch + scratch_place_);
    AddInto(wanted, missing, floats_);
  }

  void Distance(const Call& call, std::size_t b, std::size_t place) const {
    const float* const seen = Floats(call.saved, place);
    const float* const running = call.parameters->Row(call.block + b, 0);
    float* const distance = Floats(call.scratch, scale_place_);
    const float rows = together_ && !call.meeting->counts ? 0 : static_cast<float>(rows_);
    for (std::size_t c = 0; c < channels_; ++c) distance[c] = rows * (running[c] - seen[c]);
    AddGradient(call.gradient->blocks[call.block + b], distance);
  }

  const std::size_t rows_, channels_;
  const bool training_, together_;
  const float epsilon_;
  std::size_t places_ = 1, floats_ = 0;  // of a channel in one row; of the whole tensor
  bool has_workspace_ = false;
  Primitive forward_, backward_;
  Primitive own_, missing_;  // together: for this worker's statistics, and for what backward_ leaves out
  std::size_t sums_ = 0, front_scratch_ = 0;
  std::size_t mean_ = 0, variance_ = 0, count_ = 0, workspace_ = 0;
  std::size_t back_sums_ = 0, scale_place_ = 0, shift_place_ = 0, source_place_ = 0, scratch_place_ = 0;
};

}  // namespace

KernelPtr MakeBatchNorm(const KernelSpec& spec) { return std::make_unique<BatchNormKernel>(spec); }

}  // namespace freshet::model::network
