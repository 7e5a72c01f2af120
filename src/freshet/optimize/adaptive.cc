// The default for linear models: AdaGrad that does not mind the scale of a feature. Multiply a feature by c and its
// weight ends divided by c, with the same predictions on the way:
//   G += g²;  s' = max(s, |x|);  w = w · s / s' - rate · g / (s' · √(G + 4 s'²))
// The 4 s² stands for gradients not seen yet: it keeps a feature that was met once from taking a full step.

#include "optimize/rule_optimizer.h"
#include "optimize/rules.h"

namespace freshet::optimize {
namespace {

struct Adaptive {
  static constexpr int kSlots = 2, kSumSlot = 0, kScaleSlot = 1;  // G, s
  static constexpr bool kStepMatters = false;
  static constexpr float kPrior = 4;
  Penalty penalty;
  float rate = 0;
  explicit Adaptive(const OptimizerOptions& options) : penalty(options) {}
  void OnStep(double now, std::uint64_t) { rate = static_cast<float>(now); }
  // What was learned at a smaller scale is brought to the new one.
  static void Rescale(float& w, float& scale, float x) {
    const float size = Max(scale, Abs(x));
    w = WherePositive(scale, w * (scale / size), w);
    scale = size;
  }
  template <class F>
  F Step(F w, F* slots, F x, F delta) const {
    const F g = penalty.Gradient(x * delta, w);
    const F sum = slots[0] + g * g;
    const F before = slots[1], size = Max(before, Abs(x));
    slots[0] = sum;
    slots[1] = size;
    const F kept = WherePositive(before, w * (before / size), w);  // as Rescale does
    // No size, no step: the feature has only been zero.
    const F step = WherePositive(size, rate / (Sqrt(sum + kPrior * size * size) * size), size);
    return penalty.Shrink(kept - step * g, step);
  }
};

}  // namespace

OptimizerPtr MakeAdaptive(const OptimizerOptions& options, Memory& memory) {
  return std::make_unique<RuleOptimizer<Adaptive>>("adaptive", options, memory);
}

}  // namespace freshet::optimize
