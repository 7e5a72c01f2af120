// Adam (Kingma, Ba 2015), lazily: the moments of a weight move only when it is touched.

#include "optimize/rule_optimizer.h"
#include "optimize/rules.h"

namespace freshet::optimize {
namespace {

struct Adam {
  static constexpr int kSlots = 2, kScaleSlot = -1;
  static constexpr bool kStepMatters = true;
  Penalty penalty;
  float rate = 0, beta1, beta2, epsilon, correct1 = 1, correct2 = 1;
  explicit Adam(const OptimizerOptions& options)
      : penalty(options),
        beta1(static_cast<float>(options.beta1)),
        beta2(static_cast<float>(options.beta2)),
        epsilon(static_cast<float>(options.epsilon)) {}
  void OnStep(double now, std::uint64_t step) {
    rate = static_cast<float>(now);
    const auto t = static_cast<double>(std::max<std::uint64_t>(step, 1));
    correct1 = static_cast<float>(1 / (1 - std::pow(static_cast<double>(beta1), t)));
    correct2 = static_cast<float>(1 / (1 - std::pow(static_cast<double>(beta2), t)));
  }
  template <class F>
  F Step(F w, F* slots, F x, F delta) const {
    const F g = penalty.Gradient(x * delta, w);
    slots[0] = beta1 * slots[0] + (1 - beta1) * g;
    slots[1] = beta2 * slots[1] + (1 - beta2) * g * g;
    const F step = rate / (Sqrt(slots[1] * correct2) + epsilon);
    return penalty.Shrink(w - step * slots[0] * correct1, step);
  }
};

}  // namespace

OptimizerPtr MakeAdam(const OptimizerOptions& options, Memory& memory) {
  return std::make_unique<RuleOptimizer<Adam>>("adam", options, memory);
}

}  // namespace freshet::optimize
