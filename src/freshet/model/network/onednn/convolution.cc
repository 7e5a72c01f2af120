// Convolution: oneDNN's direct kernels in the layouts they like best. Weights are plain in the parameters; the kernels'
// own order is made anew in every call, which costs a fraction of a percent of the convolution itself.
//
// Backward takes the layouts of forward, which are there already, as long as oneDNN has a fast kernel for them. For
// some numbers of channels it has none but its reference, a thousand times slower: then it is asked for layouts of its
// own choice, and what is there is brought into these.

#include "model/network/onednn/weight_gradient.h"

namespace freshet::model::network {
namespace {

using Forward_ = dnnl::convolution_forward;
using BackwardData = dnnl::convolution_backward_data;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

class ConvolutionKernel final : public Kernel {
 public:
  explicit ConvolutionKernel(const KernelSpec& spec) : layer_(*spec.layer), has_bias_(layer_.bias) {
    const ContextPtr context = ContextOf(spec);
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
    Note(forward.impl_info_str(), "its output");
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
    by_weights_ = WeightGradient(context, {source, weights, bias, result, strides, dilates, pad, pad_end, has_bias_},
                                 forward, spec.worthwhile, back);
    Note(by_weights_.implementation(), "the gradient of its weights");

    if (spec.wanted[0]) {
      const auto choose_by_data = [&](const Desc& to) {
        return BackwardData::primitive_desc(
            BackwardData::desc(kDirect, Any(source), Any(weights), to, strides, dilates, pad, pad_end), Attributes(),
            context->engine, forward);
      };
      BackwardData::primitive_desc by_data = choose_by_data(forward.dst_desc());
      if (IsReference(by_data)) by_data = choose_by_data(Any(result));
      Note(by_data.impl_info_str(), "the gradient of its input");
      deltas_by_data_ = Wanted(context, forward.dst_desc(), by_data.diff_dst_desc(), back);
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
    auto& blocks = call.gradient->blocks;
    by_weights_.Run(source_.reorder ? call.saved + source_.at : static_cast<const void*>(call.inputs[0]),
                    call.output_gradient, call.scratch, blocks[call.block],
                    has_bias_ ? &blocks[call.block + 1] : nullptr);
    if (call.finished) call.finished();
    if (!by_data_) return;
    float* const wanted = call.input_gradients[0];
    void* const place = from_data_ ? static_cast<void*>(call.scratch + data_place_) : wanted;
    by_data_.Set(DNNL_ARG_DIFF_SRC, place);
    by_data_.Set(DNNL_ARG_WEIGHTS, weights_back_.Get(call.parameters->Row(call.block, 0), call.scratch));
    by_data_.Set(DNNL_ARG_DIFF_DST, deltas_by_data_.Get(call.output_gradient, call.scratch));
    by_data_.Set(DNNL_ARG_SCRATCHPAD, call.scratch + by_data_place_);
    by_data_.Run();
    if (from_data_) from_data_.Run(place, wanted);
  }

 private:
  static void Fuse(const Layer& activation, dnnl::primitive_attr& attributes) {
    dnnl::post_ops after;
    if (activation.op == Op::kRelu)
      after.append_eltwise(1, dnnl::algorithm::eltwise_relu, static_cast<float>(activation.slope), 0);
    else if (activation.op == Op::kClip)
      after.append_eltwise(1, dnnl::algorithm::eltwise_clip_v2, LeastOf(activation), MostOf(activation));
    else if (activation.op == Op::kTanh)
      after.append_eltwise(1, dnnl::algorithm::eltwise_tanh, 0, 0);
    else
      after.append_eltwise(1, dnnl::algorithm::eltwise_logistic, 0, 0);
    attributes.set_post_ops(after);
  }

  void Note(std::string_view implementation, std::string_view what) {
    if (implementation.starts_with("ref")) slow.push_back(Str(what, " (", implementation, ")"));
  }

  const Layer& layer_;
  const bool has_bias_;
  Desc plain_;
  Wanted source_, weights_, deltas_by_data_, weights_back_;
  bool source_kept_ = false;
  Primitive forward_, by_data_;
  WeightGradient by_weights_;
  Reorder from_data_;
  Activation activation_;
  std::size_t forward_place_ = 0, data_place_ = 0, by_data_place_ = 0;
};

}  // namespace

KernelPtr MakeConvolution(const KernelSpec& spec) { return std::make_unique<ConvolutionKernel>(spec); }

}  // namespace freshet::model::network
