// FTRL-proximal (McMahan et al. 2013, "Ad Click Prediction"): l1 gives weights that are exactly zero.
//
// There z sums up gradients, and what pulls the weight to where it was before each of them; the weight is where that, l1
// and l2 are least together. Here the pulls so far are written anew, from the weight and the rate of now: the same while
// the rate stays, and where it falls (a schedule) the weight only becomes slower. By the old sum it would shrink with it.

#include <algorithm>

#include "optimize/rule_optimizer.h"
#include "optimize/rules.h"

namespace freshet::optimize {
namespace {

struct Ftrl {
  static constexpr int kSlots = 2, kScaleSlot = -1;  // z, n
  static constexpr bool kStepMatters = false;
  static constexpr float kLeast = 1e-20f;  // of a rate; at that nothing moves any more
  float alpha = 0, beta, l1, l2;
  explicit Ftrl(const OptimizerOptions& options)
      : beta(static_cast<float>(options.ftrl_beta)),
        l1(static_cast<float>(options.l1)),
        l2(static_cast<float>(options.l2)) {}
  void OnStep(double now, std::uint64_t) { alpha = std::max(static_cast<float>(now), kLeast); }
  template <class F>
  F Step(F w, F* slots, F x, F delta) const {
    const F g = x * delta;
    slots[1] += g * g;
    const F slowness = (beta + Sqrt(slots[1])) / alpha + l2;
    const F forgiven = WherePositive(Abs(slots[0]) - l1, CopySign(slots[0] * 0.0f + l1, slots[0]), slots[0]);
    const F z = slots[0] = forgiven + g - slowness * w;
    const F beyond = Abs(z) - l1;  // how far it is past what l1 forgives
    return WherePositive(beyond, -CopySign(beyond, z) / slowness, z * 0.0f);
  }
};

}  // namespace

OptimizerPtr MakeFtrl(const OptimizerOptions& options, Memory& memory) {
  return std::make_unique<RuleOptimizer<Ftrl>>("ftrl", options, memory);
}

}  // namespace freshet::optimize
