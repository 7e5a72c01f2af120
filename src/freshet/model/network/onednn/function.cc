// Functions of one number whose derivative follows from the number itself, not from the result.

#include <cmath>

#include "model/network/onednn/onednn.h"

namespace freshet::model::network {
namespace {

using Eltwise = dnnl::eltwise_forward;
using EltwiseBack = dnnl::eltwise_backward;

class FunctionKernel final : public Kernel {
 public:
  explicit FunctionKernel(const KernelSpec& spec) {
    output = spec.layouts[0];
    const Desc desc = DescOf(output);
    const auto kind = spec.layer->op == Op::kHardSwish ? dnnl::algorithm::eltwise_hardswish
                      : spec.layer->approximate        ? dnnl::algorithm::eltwise_gelu_tanh
                                                       : dnnl::algorithm::eltwise_gelu_erf;
    const Eltwise::primitive_desc forward(Eltwise::desc(dnnl::prop_kind::forward_training, kind, desc, 0.0f),
                                          ContextOf(spec)->engine);
    forward_ = Primitive(ContextOf(spec), Eltwise(forward));
    forward_.Bind(DNNL_ARG_SRC, desc);
    forward_.Bind(DNNL_ARG_DST, desc);
    const EltwiseBack::primitive_desc backward(EltwiseBack::desc(kind, desc, desc, 0.0f), ContextOf(spec)->engine,
                                               forward);
    backward_ = Primitive(ContextOf(spec), EltwiseBack(backward));
    for (const int argument : {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_SRC}) backward_.Bind(argument, desc);
  }

  void Forward(const Call& call) override {
    forward_.Set(DNNL_ARG_SRC, call.inputs[0]);
    forward_.Set(DNNL_ARG_DST, call.output);
    forward_.Run();
  }
  void Backward(const Call& call) override {
    if (call.input_gradients[0] == nullptr) return;
    backward_.Set(DNNL_ARG_SRC, call.inputs[0]);
    backward_.Set(DNNL_ARG_DIFF_DST, call.output_gradient);
    backward_.Set(DNNL_ARG_DIFF_SRC, call.input_gradients[0]);
    backward_.Run();
  }

 private:
  Primitive forward_, backward_;
};

// The error function, which the library has only inside gelu. Of the zeros that fill a layout up it makes zeros.
class ErfKernel final : public Kernel {
 public:
  explicit ErfKernel(const KernelSpec& spec) : count_(spec.layouts[0].floats()) { output = spec.layouts[0]; }

  void Forward(const Call& call) override {
    InParallel(count_, kCost, [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i) call.output[i] = std::erf(call.inputs[0][i]);
    });
  }
  void Backward(const Call& call) override {
    if (call.input_gradients[0] == nullptr) return;
    constexpr float kAtZero = 1.1283791671f;  // 2 / sqrt(pi)
    InParallel(count_, kCost, [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i) {
        const float x = call.inputs[0][i];
        call.input_gradients[0][i] = call.output_gradient[i] * kAtZero * std::exp(-x * x);
      }
    });
  }

 private:
  static constexpr std::size_t kCost = 16;  // of one, in floats moved
  const std::size_t count_;
};

}  // namespace

KernelPtr MakeFunction(const KernelSpec& spec) {
  if (spec.layer->op == Op::kErf) return std::make_unique<ErfKernel>(spec);
  return std::make_unique<FunctionKernel>(spec);
}

}  // namespace freshet::model::network
