// Plain stochastic gradient descent:  w -= rate · g

#include "optimize/rule_optimizer.h"
#include "optimize/rules.h"

namespace freshet::optimize {
namespace {

struct Sgd {
  static constexpr int kSlots = 0, kScaleSlot = -1;
  static constexpr bool kStepMatters = false;
  Penalty penalty;
  float rate = 0;
  explicit Sgd(const OptimizerOptions& options) : penalty(options) {}
  void OnStep(double now, std::uint64_t) { rate = static_cast<float>(now); }
  template <class F>
  F Step(F w, F*, F x, F delta) const {
    return penalty.Shrink(w - rate * penalty.Gradient(x * delta, w), rate);
  }
};

}  // namespace

OptimizerPtr MakeSgd(const OptimizerOptions& options, Memory& memory) {
  return std::make_unique<RuleOptimizer<Sgd>>("sgd", options, memory);
}

}  // namespace freshet::optimize
