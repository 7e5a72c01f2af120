#pragma once

#include <algorithm>
#include <atomic>
#include <string>

#include "model/network/backend.h"

namespace freshet::model::network {

// A back-end of plain loops for fully connected layers and relu: what a second one must bring, and a measure for the
// first.

// out = in · weightsᵀ + bias; B rows, I inputs, O outputs, all row-major.
class PlainDenseKernel final : public Kernel {
 public:
  explicit PlainDenseKernel(const KernelSpec& spec)
      : rows_(spec.rows),
        inputs_(spec.layouts[0].floats() / spec.rows),
        outputs_(static_cast<std::size_t>(spec.layer->outputs)),
        bias_(spec.layer->bias) {}

  void Forward(const Call& call) override {
    for (std::size_t r = 0; r < rows_; ++r)
      for (std::size_t o = 0; o < outputs_; ++o) {
        float sum = bias_ ? call.parameters->Row(call.block + 1, 0)[o] : 0;
        for (std::size_t i = 0; i < inputs_; ++i) sum += call.parameters->Row(call.block, o)[i] * In(call, r)[i];
        call.output[r * outputs_ + o] = sum;
      }
  }

  void Backward(const Call& call) override {
    const std::span<float> weights = Fresh(call.gradient->blocks[call.block]);
    const std::span<float> bias = bias_ ? Fresh(call.gradient->blocks[call.block + 1]) : std::span<float>();
    float* const back = call.input_gradients[0];
    if (back != nullptr) std::fill_n(back, rows_ * inputs_, 0.0f);
    for (std::size_t r = 0; r < rows_; ++r)
      for (std::size_t o = 0; o < outputs_; ++o) {
        const float delta = call.output_gradient[r * outputs_ + o];
        if (bias_) bias[o] += delta;
        for (std::size_t i = 0; i < inputs_; ++i) {
          weights[o * inputs_ + i] += delta * In(call, r)[i];
          if (back != nullptr) back[r * inputs_ + i] += delta * call.parameters->Row(call.block, o)[i];
        }
      }
  }

 private:
  const float* In(const Call& call, std::size_t row) const { return call.inputs[0] + row * inputs_; }
  static std::span<float> Fresh(optimize::BlockGradient& block) {
    if (block.empty()) std::fill(block.memory().begin(), block.memory().end(), 0.0f);
    block.SetFull();
    return block.memory();
  }

  const std::size_t rows_, inputs_, outputs_;
  const bool bias_;
};

// max(x, 0), and x itself where `slope` is 1: a copy.
class PlainReluKernel final : public Kernel {
 public:
  PlainReluKernel(const KernelSpec& spec, float slope) : count_(spec.layouts[0].floats()), slope_(slope) {}
  void Forward(const Call& call) override {
    for (std::size_t i = 0; i < count_; ++i) call.output[i] = Slope(call.inputs[0][i]) * call.inputs[0][i];
  }
  void Backward(const Call& call) override {
    if (call.input_gradients[0] == nullptr) return;
    for (std::size_t i = 0; i < count_; ++i)
      call.input_gradients[0][i] = Slope(call.inputs[0][i]) * call.output_gradient[i];
  }

 private:
  float Slope(float x) const { return x > 0 ? 1.0f : slope_; }

  const std::size_t count_;
  const float slope_;
};

class ReferenceBackend final : public Backend {
 public:
  std::string_view name() const override { return "reference"; }
  std::shared_ptr<Context> MakeContext() const override { return std::make_shared<Context>(); }
  Layout PlainLayout(std::size_t rows, const Shape& shape) const override {
    std::size_t floats = rows;
    for (const std::int64_t extent : shape) floats *= static_cast<std::size_t>(extent);
    return {std::make_shared<Layout::Inside>(), floats * sizeof(float), true};
  }
  bool CanFuse(const Layer&, const Layer&) const override { return false; }
  Result<std::unique_ptr<Kernel>> MakeKernel(const KernelSpec& spec) const override {
    if (spec.layer->op == Op::kDense) return Made(std::make_unique<PlainDenseKernel>(spec), spec);
    if (spec.layer->op == Op::kRelu)
      return Made(std::make_unique<PlainReluKernel>(spec, static_cast<float>(spec.layer->slope)), spec);
    return Error{Code::kInvalid,
                 Str("network, layer ", Quoted(spec.layer->name), ": the reference has no ", NameOf(spec.layer->op))};
  }
  Result<std::unique_ptr<Kernel>> MakePlain(const KernelSpec& spec) const override {
    return Made(std::make_unique<PlainReluKernel>(spec, 1.0f), spec);
  }
  int UseThreads(int threads) const override { return threads_.exchange(threads); }
  void InParallel(std::size_t count, std::size_t, RangeWork work) const override {
    if (count > 0) work(0, count);
  }
  void AddInto(float* to, const float* from, std::size_t count) const override {
    ++added_;
    for (std::size_t i = 0; i < count; ++i) to[i] += from[i];
  }

  // What a test may want to know of programs that it ran.
  int kernels() const { return kernels_; }
  int added() const { return added_; }
  int threads() const { return threads_; }

 private:
  std::unique_ptr<Kernel> Made(std::unique_ptr<Kernel> kernel, const KernelSpec& spec) const {
    ++kernels_;
    kernel->output = PlainLayout(spec.rows, spec.output);
    return kernel;
  }

  mutable std::atomic<int> kernels_{0}, added_{0}, threads_{1};
};

}  // namespace freshet::model::network
