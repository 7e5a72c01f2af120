// Functions of one number: relu by a loop of ours, the others by oneDNN's.

#include <algorithm>
#include <limits>

#include "model/network/onednn/onednn.h"

namespace freshet::model::network {
namespace {

constexpr std::size_t kPiece = 4096;

template <class Work>
void ForPieces(std::size_t count, Work work) {
  InParallel((count + kPiece - 1) / kPiece, kPiece,
             [&](std::size_t first, std::size_t last) { work(first * kPiece, std::min(last * kPiece, count)); });
}

class ElementwiseKernel final : public Kernel {
 public:
  explicit ElementwiseKernel(const KernelSpec& spec)
      : activation_(ContextOf(spec), *spec.layer, DescOf(spec.layouts[0])), count_(spec.layouts[0].floats()) {
    output = spec.layouts[0];
    needs_input = false;
    needs_output = true;
  }
  void Forward(const Call& call) override {
    std::copy_n(call.inputs[0], count_, call.output);
    activation_.Forward(call.output);
  }
  void Backward(const Call& call) override {
    if (call.input_gradients[0] == nullptr) return;
    std::copy_n(call.output_gradient, count_, call.input_gradients[0]);
    activation_.Backward(call.output, call.input_gradients[0]);
  }

 private:
  Activation activation_;
  std::size_t count_;
};

}  // namespace

bool IsActivation(Op op) { return op == Op::kRelu || op == Op::kTanh || op == Op::kSigmoid || op == Op::kClip; }

float LeastOf(const Layer& layer) {
  return static_cast<float>(std::max(layer.least, -double{std::numeric_limits<float>::max()}));
}
float MostOf(const Layer& layer) {
  return static_cast<float>(std::min(layer.most, double{std::numeric_limits<float>::max()}));
}

Activation::Activation(const ContextPtr& context, const Layer& layer, const Desc& desc)
    : layer_(&layer), count_(desc.get_size() / sizeof(float)) {
  if (layer.op == Op::kRelu) return;
  using Eltwise = dnnl::eltwise_forward;
  using EltwiseBack = dnnl::eltwise_backward;
  const auto kind = layer.op == Op::kTanh   ? dnnl::algorithm::eltwise_tanh_use_dst_for_bwd
                    : layer.op == Op::kClip ? dnnl::algorithm::eltwise_clip_v2_use_dst_for_bwd
                                            : dnnl::algorithm::eltwise_logistic_use_dst_for_bwd;
  const float least = LeastOf(layer), most = MostOf(layer);
  const Eltwise::primitive_desc forward(Eltwise::desc(dnnl::prop_kind::forward_training, kind, desc, least, most),
                                        context->engine);
  forward_ = Primitive(context, Eltwise(forward));
  forward_.Bind(DNNL_ARG_SRC, desc);
  forward_.Bind(DNNL_ARG_DST, desc);
  const EltwiseBack::primitive_desc backward(EltwiseBack::desc(kind, desc, desc, least, most), context->engine,
                                             forward);
  backward_ = Primitive(context, EltwiseBack(backward));
  backward_.Bind(DNNL_ARG_DST, desc);
  backward_.Bind(DNNL_ARG_DIFF_DST, desc);
  backward_.Bind(DNNL_ARG_DIFF_SRC, desc);
}

void Activation::Forward(float* data) {
  if (forward_) {
    forward_.Set(DNNL_ARG_SRC, data);
    forward_.Set(DNNL_ARG_DST, data);
    return forward_.Run();
  }
  const auto slope = static_cast<float>(layer_->slope);
  ForPieces(count_, [&](std::size_t first, std::size_t last) {
#pragma omp simd
    for (std::size_t i = first; i < last; ++i) data[i] = data[i] > 0 ? data[i] : slope * data[i];
  });
}

void Activation::Backward(const float* result, float* gradient) {
  if (backward_) {
    backward_.Set(DNNL_ARG_DST, result);
    backward_.Set(DNNL_ARG_DIFF_DST, gradient);
    backward_.Set(DNNL_ARG_DIFF_SRC, gradient);
    return backward_.Run();
  }
  const auto slope = static_cast<float>(layer_->slope);
  ForPieces(count_, [&](std::size_t first, std::size_t last) {
#pragma omp simd
    for (std::size_t i = first; i < last; ++i) gradient[i] = result[i] > 0 ? gradient[i] : slope * gradient[i];
  });
}

KernelPtr MakeElementwise(const KernelSpec& spec) { return std::make_unique<ElementwiseKernel>(spec); }

}  // namespace freshet::model::network
