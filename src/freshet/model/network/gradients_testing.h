#pragma once

#include <string>
#include <vector>

#include "model/network/engine_testing.h"

namespace freshet::model::network {

// What the engine's outputs and gradients should be: the reference's outputs, and its central differences. In double a
// step can be so small that the differences are right to many digits.

// Every output against the reference.
inline void ExpectRightOutputs(const Case& made, bool training, const Outcome& outcome, double relative) {
  const Trace trace =
      made.reference.Run(WeightsOf(made.parameters), {made.input.begin(), made.input.end()}, training, made.draw);
  ASSERT_FALSE(outcome.outputs.empty());
  for (const auto& [layer, output] : outcome.outputs)
    ExpectClose(output, trace.outputs[Size(layer)], relative, 1e-6,
                Str("output of ", made.graph.layers[Size(layer)].name));
}

// A tensor that can be moved, and the engine's gradient of it.
struct Movable {
  std::string name;
  Values* values;
  std::vector<float> gradient;
};

// Compares gradients in the numbers of one Case. Statistics are compared with what the reference saw.
class GradientCheck {
 public:
  GradientCheck(const Case& made, const Outcome& outcome)
      : made_(made), weights_(WeightsOf(made.parameters)), input_(made.input.begin(), made.input.end()) {
    const Trace trace = made.reference.Run(weights_, input_, true, made.draw);
    for (std::size_t b = 0; b < weights_.size(); ++b) {
      if (outcome.gradient.blocks[b].empty()) continue;  // nothing that goes out depends on it
      const std::string name = made.parameters.block(b).name;
      std::vector<float> gradient = Copy(outcome.gradient.blocks[b].memory());
      if (made.parameters.follow(b) > 0)
        ExpectDistance(b, trace.statistics[b], gradient);
      else
        tensors_.push_back({name, &weights_[b], std::move(gradient)});
    }
    if (!HasSymbols()) tensors_.push_back({"the input", &input_, outcome.input_gradient});
    for (const Movable& tensor : tensors_)
      for (const float value : tensor.gradient) norm_ += value * value;
    norm_ = std::sqrt(norm_);
  }

  // Up to `most` elements of every tensor, one after another.
  void ExpectElements(std::size_t most, double relative) {
    for (const Movable& tensor : tensors_) {
      ASSERT_EQ(tensor.values->size(), tensor.gradient.size());
      const std::size_t every = (tensor.values->size() + most - 1) / most;
      std::vector<float> got;
      Values want;
      for (std::size_t i = 0; i < tensor.values->size(); i += every) {
        got.push_back(tensor.gradient[i]);
        want.push_back(Slope([&](double step) { (*tensor.values)[i] += step; }));
      }
      ExpectClose(got, want, relative, 1e-5 * norm_, Str("gradient of ", tensor.name));
    }
  }

  // Every tensor in one random direction.
  void ExpectDirections(base::Random& random, double relative) {
    for (const Movable& tensor : tensors_) {
      Values direction;
      double got = 0, norm = 0;
      for (const float slope : tensor.gradient) {
        direction.push_back(random.Normal());
        got += slope * direction.back();
        norm += slope * slope;
      }
      const double want = Slope([&](double step) {
        for (std::size_t i = 0; i < direction.size(); ++i) (*tensor.values)[i] += step * direction[i];
      });
      EXPECT_NEAR(got, want, relative * std::sqrt(norm) + 1e-5 * norm_) << "gradient of " << tensor.name;
    }
  }

 private:
  bool HasSymbols() const {
    for (const Layer& layer : made_.graph.layers)
      if (layer.op == Op::kEmbedding) return true;
    return false;
  }

  void ExpectDistance(std::size_t b, const Values& seen, const std::vector<float>& gradient) const {
    Values want;
    for (std::size_t i = 0; i < seen.size(); ++i)
      want.push_back(static_cast<double>(made_.rows) * (weights_[b][i] - seen[i]));
    ExpectClose(gradient, want, 1e-4, 1e-5, Str("distance of ", made_.parameters.block(b).name));
  }

  template <class Move>
  double Slope(const Move& move) {
    constexpr double kStep = 1e-6;
    move(kStep);
    const double above = made_.Loss(weights_, input_, true);
    move(-2 * kStep);
    const double below = made_.Loss(weights_, input_, true);
    move(kStep);
    return (above - below) / (2 * kStep);
  }

  const Case& made_;
  Weights weights_;
  Values input_;
  std::vector<Movable> tensors_;
  double norm_ = 0;  // of all gradients together
};

}  // namespace freshet::model::network
