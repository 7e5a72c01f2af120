// Convolution: oneDNN's direct kernels in the layouts they like best. Weights are plain in the parameters; the kernels'
// own order is made anew in every call, which costs a fraction of a percent of the convolution itself.

#include "model/network/onednn/onednn.h"

namespace freshet::model::network {
namespace {

using Forward_ = dnnl::convolution_forward;
using BackwardData = dnnl::convolution_backward_data;
using BackwardWeights = dnnl::convolution_backward_weights;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

// A tensor in the layout a primitive wants, made from another when they differ.
struct Wanted {
  Desc desc;
  Reorder reorder;  // none when nothing is to be done
  std::size_t at = 0;

  Wanted() = default;
  Wanted(const std::shared_ptr<Context>& context, const Desc& have, const Desc& want, Places& places) : desc(want) {
    if (have == want) return;
    reorder = Reorder(context, have, want);
    at = places.Take(want.get_size());
  }
  const void* Get(const void* have, std::byte* places) {
    if (!reorder) return have;
    reorder.Run(have, places + at);
    return places + at;
  }
};

class ConvolutionKernel final : public Kernel {
 public:
  explicit ConvolutionKernel(const KernelSpec& spec) : layer_(*spec.layer), has_bias_(layer_.bias) {
    const auto& context = spec.context;
    const std::int64_t groups = layer_.groups, inputs = spec.inputs[0][0];
    const Dims source = DimsOf(spec.rows, spec.inputs[0]), result = DimsOf(spec.rows, spec.output);
    Dims weights{layer_.outputs / groups, inputs / groups, layer_.kernel[0], layer_.kernel[1]};
    if (groups > 1) weights.insert(weights.begin(), groups);
    const Dims bias{layer_.outputs};
    const Dims strides{layer_.stride[0], layer_.stride[1]};
    const Dims dilates{layer_.dilation[0] - 1, layer_.dilation[1] - 1};
    const Dims pad{layer_.pad[0], layer_.pad[1]}, pad_end{layer_.pad_end[0], layer_.pad_end[1]};
    const Desc bias_desc = has_bias_ ? Desc(bias, kFloat, Tag::a) : Desc();
    plain_ = Plain(weights);

    dnnl::primitive_attr attributes = Attributes();
    if (spec.activation != nullptr) Fuse(*spec.activation, attributes);
    const auto prop = spec.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    const Forward_::primitive_desc forward(Forward_::desc(prop, kDirect, Any(source), Any(weights), bias_desc,
                                                          Any(result), strides, dilates, pad, pad_end),
                                           attributes, context->engine);
    output = LayoutOf(forward.dst_desc());
    Places keep, here;
    source_ = Wanted(context, DescOf(spec.layouts[0]), forward.src_desc(), spec.training ? keep : here);
    source_kept_ = spec.training;
    weights_ = Wanted(context, plain_, forward.weights_desc(), here);
    forward_place_ = here.Take(forward.scratchpad_desc().get_size());
    forward_ = Primitive(context, Forward_(forward));
    forward_.Bind(DNNL_ARG_SRC, forward.src_desc());
    forward_.Bind(DNNL_ARG_WEIGHTS, forward.weights_desc());
    if (has_bias_) forward_.Bind(DNNL_ARG_BIAS, bias_desc);
    forward_.Bind(DNNL_ARG_DST, forward.dst_desc());
    forward_.Bind(DNNL_ARG_SCRATCHPAD, forward.scratchpad_desc());
    saved = keep.bytes();
    forward_scratch = here.bytes();
    if (!spec.training) return;

    needs_input = !source_.reorder;
    if (spec.activation != nullptr) {
      needs_output = true;
      activation_ = Activation(context, *spec.activation, forward.dst_desc());
    }
    Places back;
    const BackwardWeights::primitive_desc by_weights(
        BackwardWeights::desc(kDirect, forward.src_desc(), Any(weights), bias_desc, forward.dst_desc(), strides,
                              dilates, pad, pad_end),
        Attributes(), context->engine, forward);
    if (by_weights.diff_weights_desc() != plain_) to_plain_ = Reorder(context, by_weights.diff_weights_desc(), plain_);
    gradient_place_ = back.Take(by_weights.diff_weights_desc().get_size());
    plain_place_ = back.Take(plain_.get_size());
    bias_place_ = back.Take(static_cast<std::size_t>(layer_.outputs) * sizeof(float));
    by_weights_place_ = back.Take(by_weights.scratchpad_desc().get_size());
    by_weights_ = Primitive(context, BackwardWeights(by_weights));
    by_weights_.Bind(DNNL_ARG_SRC, by_weights.src_desc());
    by_weights_.Bind(DNNL_ARG_DIFF_DST, by_weights.diff_dst_desc());
    by_weights_.Bind(DNNL_ARG_DIFF_WEIGHTS, by_weights.diff_weights_desc());
    if (has_bias_) by_weights_.Bind(DNNL_ARG_DIFF_BIAS, bias_desc);
    by_weights_.Bind(DNNL_ARG_SCRATCHPAD, by_weights.scratchpad_desc());

    if (spec.wanted[0]) {
      const BackwardData::primitive_desc by_data(
          BackwardData::desc(kDirect, Any(source), Any(weights), forward.dst_desc(), strides, dilates, pad, pad_end),
          Attributes(), context->engine, forward);
      weights_back_ = Wanted(context, plain_, by_data.weights_desc(), back);
      if (by_data.diff_src_desc() != DescOf(spec.layouts[0])) {
        from_data_ = Reorder(context, by_data.diff_src_desc(), DescOf(spec.layouts[0]));
        data_place_ = back.Take(by_data.diff_src_desc().get_size());
      }
      by_data_place_ = back.Take(by_data.scratchpad_desc().get_size());
      by_data_ = Primitive(context, BackwardData(by_data));
      by_data_.Bind(DNNL_ARG_DIFF_SRC, by_data.diff_src_desc());
      by_data_.Bind(DNNL_ARG_WEIGHTS, by_data.weights_desc());
      by_data_.Bind(DNNL_ARG_DIFF_DST, by_data.diff_dst_desc());
      by_data_.Bind(DNNL_ARG_SCRATCHPAD, by_data.scratchpad_desc());
    }
    backward_scratch = back.bytes();
  }

  void Forward(const Call& call) override {
    forward_.Set(DNNL_ARG_SRC, source_.Get(call.inputs[0], source_kept_ ? call.saved : call.scratch));
    forward_.Set(DNNL_ARG_WEIGHTS, weights_.Get(call.parameters->Row(call.block, 0), call.scratch));
    if (has_bias_) forward_.Set(DNNL_ARG_BIAS, call.parameters->Row(call.block + 1, 0));
    forward_.Set(DNNL_ARG_DST, call.output);
    forward_.Set(DNNL_ARG_SCRATCHPAD, call.scratch + forward_place_);
    forward_.Run();
  }

  void Backward(const Call& call) override {
    if (activation_) activation_.Backward(call.output, call.output_gradient);
    WeightGradient(call);
    if (call.finished) call.finished();
    if (!by_data_) return;
    float* const wanted = call.input_gradients[0];
    void* const place = from_data_ ? static_cast<void*>(call.scratch + data_place_) : wanted;
    by_data_.Set(DNNL_ARG_DIFF_SRC, place);
    by_data_.Set(DNNL_ARG_WEIGHTS, weights_back_.Get(call.parameters->Row(call.block, 0), call.scratch));
    by_data_.Set(DNNL_ARG_DIFF_DST, call.output_gradient);
    by_data_.Set(DNNL_ARG_SCRATCHPAD, call.scratch + by_data_place_);
    by_data_.Run();
    if (from_data_) from_data_.Run(place, wanted);
  }

 private:
  static void Fuse(const Layer& activation, dnnl::primitive_attr& attributes) {
    dnnl::post_ops after;
    if (activation.op == Op::kRelu)
      after.append_eltwise(1, dnnl::algorithm::eltwise_relu, static_cast<float>(activation.slope), 0);
    else if (activation.op == Op::kTanh)
      after.append_eltwise(1, dnnl::algorithm::eltwise_tanh, 0, 0);
    else
      after.append_eltwise(1, dnnl::algorithm::eltwise_logistic, 0, 0);
    attributes.set_post_ops(after);
  }

  // Straight into the gradient buffer where layout and emptiness allow.
  void WeightGradient(const Call& call) {
    optimize::BlockGradient& weights = call.gradient->blocks[call.block];
    const bool direct = !to_plain_ && weights.empty();
    void* const place = direct ? static_cast<void*>(weights.memory().data()) : call.scratch + gradient_place_;
    by_weights_.Set(DNNL_ARG_SRC, source_.reorder ? call.saved + source_.at : static_cast<const void*>(call.inputs[0]));
    by_weights_.Set(DNNL_ARG_DIFF_DST, call.output_gradient);
    by_weights_.Set(DNNL_ARG_DIFF_WEIGHTS, place);
    auto* const bias = reinterpret_cast<float*>(call.scratch + bias_place_);
    if (has_bias_) by_weights_.Set(DNNL_ARG_DIFF_BIAS, bias);
    by_weights_.Set(DNNL_ARG_SCRATCHPAD, call.scratch + by_weights_place_);
    by_weights_.Run();
    if (has_bias_) AddGradient(call.gradient->blocks[call.block + 1], bias);
    if (direct) {
      weights.SetFull();
    } else if (!to_plain_) {
      AddGradient(weights, static_cast<const float*>(place));
    } else if (weights.empty()) {
      to_plain_.Run(place, weights.memory().data());
      weights.SetFull();
    } else {
      to_plain_.Run(place, call.scratch + plain_place_);
      AddGradient(weights, reinterpret_cast<const float*>(call.scratch + plain_place_));
    }
  }

  const Layer& layer_;
  const bool has_bias_;
  Desc plain_;
  Wanted source_, weights_, weights_back_;
  bool source_kept_ = false;
  Primitive forward_, by_weights_, by_data_;
  Reorder to_plain_, from_data_;
  Activation activation_;
  std::size_t forward_place_ = 0, gradient_place_ = 0, plain_place_ = 0, bias_place_ = 0, by_weights_place_ = 0;
  std::size_t data_place_ = 0, by_data_place_ = 0;
};

}  // namespace

KernelPtr MakeConvolution(const KernelSpec& spec) { return std::make_unique<ConvolutionKernel>(spec); }

}  // namespace freshet::model::network
