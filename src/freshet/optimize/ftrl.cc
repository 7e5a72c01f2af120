// FTRL-proximal (McMahan et al. 2013, "Ad Click Prediction"): l1 gives weights that are exactly zero.

#include "optimize/rule_optimizer.h"
#include "optimize/rules.h"

namespace freshet::optimize {
namespace {

struct Ftrl {
  static constexpr int kSlots = 2, kScaleSlot = -1;  // z, n
  static constexpr bool kStepMatters = false;
  float alpha = 0, beta, l1, l2;
  explicit Ftrl(const OptimizerOptions& options)
      : beta(static_cast<float>(options.ftrl_beta)),
        l1(static_cast<float>(options.l1)),
        l2(static_cast<float>(options.l2)) {}
  void OnStep(double now, std::uint64_t) { alpha = static_cast<float>(now); }
  template <class F>
  F Step(F w, F* slots, F x, F delta) const {
    const F g = x * delta;
    const F root = Sqrt(slots[1]);
    slots[1] += g * g;
    const F grown = Sqrt(slots[1]);
    slots[0] += g - (grown - root) / alpha * w;
    const F z = slots[0];
    const F beyond = Abs(z) - l1;  // how far the sum of gradients is past what l1 forgives
    return WherePositive(beyond, -CopySign(beyond, z) / ((beta + grown) / alpha + l2), z * 0.0f);
  }
};

}  // namespace

OptimizerPtr MakeFtrl(const OptimizerOptions& options, Memory& memory) {
  return std::make_unique<RuleOptimizer<Ftrl>>("ftrl", options, memory);
}

}  // namespace freshet::optimize
