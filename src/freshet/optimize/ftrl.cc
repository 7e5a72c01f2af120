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
  float Step(float w, float* slots, float x, float delta) const {
    const float g = x * delta;
    const float root = std::sqrt(slots[1]);
    slots[1] += g * g;
    const float grown = std::sqrt(slots[1]);
    slots[0] += g - (grown - root) / alpha * w;
    const float z = slots[0];
    if (std::abs(z) <= l1) return 0.0f;
    return -(z - std::copysign(l1, z)) / ((beta + grown) / alpha + l2);
  }
};

}  // namespace

OptimizerPtr MakeFtrl(const OptimizerOptions& options, Memory& memory) {
  return std::make_unique<RuleOptimizer<Ftrl>>("ftrl", options, memory);
}

}  // namespace freshet::optimize
