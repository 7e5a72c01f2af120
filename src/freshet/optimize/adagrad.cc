// AdaGrad (Duchi, Hazan, Singer 2011):  G += g²;  w -= rate · g / (√G + epsilon)

#include "optimize/rule_optimizer.h"
#include "optimize/rules.h"

namespace freshet::optimize {
namespace {

struct AdaGrad {
  static constexpr int kSlots = 1, kSumSlot = 0, kScaleSlot = -1;
  static constexpr bool kStepMatters = false;
  Penalty penalty;
  float rate = 0, epsilon;
  explicit AdaGrad(const OptimizerOptions& options) : penalty(options), epsilon(static_cast<float>(options.epsilon)) {}
  void OnStep(double now, std::uint64_t) { rate = static_cast<float>(now); }
  template <class F>
  F Step(F w, F* slots, F x, F delta) const {
    const F g = penalty.Gradient(x * delta, w);
    slots[0] += g * g;
    const F step = rate / (Sqrt(slots[0]) + epsilon);
    return penalty.Shrink(w - step * g, step);
  }
};

}  // namespace

OptimizerPtr MakeAdaGrad(const OptimizerOptions& options, Memory& memory) {
  return std::make_unique<RuleOptimizer<AdaGrad>>("adagrad", options, memory);
}

}  // namespace freshet::optimize
