// Heavy-ball momentum:  v = momentum · v + g;  w -= rate · v.  A weight that is not touched does not coast.

#include "optimize/rule_optimizer.h"
#include "optimize/rules.h"

namespace freshet::optimize {
namespace {

struct Momentum {
  static constexpr int kSlots = 1, kScaleSlot = -1;
  static constexpr bool kStepMatters = false;
  Penalty penalty;
  float rate = 0, keep;
  explicit Momentum(const OptimizerOptions& options) : penalty(options), keep(static_cast<float>(options.momentum)) {}
  void OnStep(double now, std::uint64_t) { rate = static_cast<float>(now); }
  template <class F>
  F Step(F w, F* slots, F x, F delta) const {
    slots[0] = keep * slots[0] + penalty.Gradient(x * delta, w);
    return penalty.Shrink(w - rate * slots[0], rate);
  }
};

}  // namespace

OptimizerPtr MakeMomentum(const OptimizerOptions& options, Memory& memory) {
  return std::make_unique<RuleOptimizer<Momentum>>("momentum", options, memory);
}

}  // namespace freshet::optimize
