#pragma once

#include <atomic>
#include <cmath>

#include "optimize/lanes.h"
#include "optimize/optimizer.h"

namespace freshet::optimize {

// The loops every update rule shares. A Rule is a small struct with
//   static constexpr int kSlots;                       floats it remembers per weight
//   static constexpr bool kStepMatters;                does it count steps?
//   void OnStep(double rate, std::uint64_t step)       before each update
//   F Step(F w, F* slots, F x, F delta) const          the new weight, for the gradient x·delta; x is a feature's
//   value;
//                                                      F is float, or Lanes for eight weights at once
// when a slot is a sum over all gradients that nothing else depends on, kSumSlot, its number;
// and, when it cares for the size of features, kScaleSlot, the slot that holds the largest |x| of the weight, and
//   static void Rescale(float& w, float& scale, float x)   what a larger |x| does to weight and slot
template <class Rule>
class RuleOptimizer final : public Optimizer {
  static constexpr int kSlots = Rule::kSlots;

 public:
  RuleOptimizer(std::string_view name, const OptimizerOptions& options, Memory& memory)
      : Optimizer(options, memory), name_(name), rule_(options) {}

  std::string_view name() const override { return name_; }
  int slots() const override { return kSlots; }
  std::unique_ptr<Optimizer> Sibling() const override {
    auto sibling = std::make_unique<RuleOptimizer>(name_, options_, memory_);
    ShareStateWith(*sibling);
    sibling->SetStep(step_);
    return sibling;
  }

  void UpdateRows(Parameters& parameters, std::size_t b, std::span<const std::uint32_t> rows,
                  std::span<const float> values, std::span<const float> deltas, Sharing sharing) override {
    if (sharing == Sharing::kShared)
      Rows<true>(parameters, b, rows, values, deltas);
    else
      Rows<false>(parameters, b, rows, values, deltas);
  }

  void UpdateScaled(Parameters& parameters, std::size_t b, std::uint64_t row, std::span<const float> values,
                    float delta, Sharing sharing) override {
    if (sharing == Sharing::kShared)
      Scaled<true>(parameters.Row(b, row), Slots(parameters, b, row), values, delta);
    else
      Scaled<false>(parameters.Row(b, row), Slots(parameters, b, row), values, delta);
  }

  void UpdateRow(Parameters& parameters, std::size_t b, std::uint64_t row, std::span<const float> gradient) override {
    float* const w = parameters.Row(b, row);
    float* const slots = Slots(parameters, b, row);
    const std::size_t width = gradient.size();
    for (std::size_t k = 0; k < width; ++k) {
      float local[kSlots + 1];
      for (int s = 0; s < kSlots; ++s) local[s] = slots[static_cast<std::size_t>(s) * width + k];
      if constexpr (Rule::kScaleSlot >= 0) {
        // x is not known here; a rule that needs its size was told by Observe…, else it counts as 1.
        float& scale = local[Rule::kScaleSlot];
        if (scale == 0 && gradient[k] == 0) continue;  // a feature that has only been zero still has no size
        if (scale == 0) scale = 1;
        w[k] = rule_.Step(w[k], local, scale, gradient[k] / scale);
      } else {
        w[k] = rule_.Step(w[k], local, 1.0f, gradient[k]);
      }
      for (int s = 0; s < kSlots; ++s) slots[static_cast<std::size_t>(s) * width + k] = local[s];
    }
  }

  void UpdateDense(Parameters& parameters, std::size_t b, std::uint64_t first, std::uint64_t last, const float* values,
                   float factor) override {
    const std::size_t width = parameters.width(b);
    for (std::uint64_t row = first; row < last; ++row, values += width) {
      if constexpr (Rule::kScaleSlot >= 0) {
        std::vector<float> gradient(values, values + width);
        for (float& value : gradient) value *= factor;
        UpdateRow(parameters, b, row, gradient);
      } else {
        Scaled<false>(parameters.Row(b, row), Slots(parameters, b, row), {values, width}, factor);
      }
    }
  }

  void ObserveRows(Parameters& parameters, std::size_t b, std::span<const std::uint32_t> rows,
                   std::span<const float> values) override {
    if constexpr (Rule::kScaleSlot >= 0)
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::size_t width = parameters.width(b);
        float* const scale = Slots(parameters, b, rows[i]) + Rule::kScaleSlot * width;
        for (std::size_t k = 0; k < width; ++k) Rule::Rescale(parameters.Row(b, rows[i])[k], scale[k], values[i]);
      }
  }
  void ObserveScaled(Parameters& parameters, std::size_t b, std::uint64_t row, std::span<const float> values) override {
    if constexpr (Rule::kScaleSlot >= 0) {
      float* const scale = Slots(parameters, b, row) + Rule::kScaleSlot * values.size();
      for (std::size_t k = 0; k < values.size(); ++k) Rule::Rescale(parameters.Row(b, row)[k], scale[k], values[k]);
    }
  }

  void Fade(Parameters& parameters, double keep) override {
    if constexpr (requires { Rule::kSumSlot; })
      for (std::size_t b = 0; b < parameters.blocks(); ++b)
        for (std::uint64_t row = 0; row < parameters.rows(b); ++row) {
          float* const sums = Slots(parameters, b, row) + Rule::kSumSlot * parameters.width(b);
          for (std::uint64_t k = 0; k < parameters.width(b); ++k) sums[k] *= static_cast<float>(keep);
        }
  }

  void Prefetch(const Parameters& parameters, std::size_t b, std::span<const std::uint32_t> rows) const override {
    const float* const weights = parameters.Row(b, 0);
    const std::uint64_t stride = parameters.stride(b);
    if (kSlots == 0 || !parameters.plain(b)) {
      for (const std::uint32_t row : rows) __builtin_prefetch(weights + row * stride, 1);
      return;
    }
    const float* const slots = state().Row(b, 0);
    const std::uint64_t slots_stride = state().stride(b);
    for (const std::uint32_t row : rows) {
      __builtin_prefetch(weights + row * stride, 1);
      __builtin_prefetch(slots + row * slots_stride, 1);
    }
  }

 private:
  void OnStep() override { rule_.OnStep(rate_, step_); }
  bool StepMatters() const override { return Rule::kStepMatters; }
  float* Slots(Parameters& parameters, std::size_t b, std::uint64_t row) {
    if constexpr (kSlots == 0)
      return nullptr;
    else
      return parameters.plain(b) ? state().Row(b, row) : parameters.Row(b, row) + parameters.width(b);
  }

  template <bool kShared>
  static float Load(float& place) {
    if constexpr (kShared)
      return std::atomic_ref(place).load(std::memory_order_relaxed);
    else
      return place;
  }
  template <bool kShared>
  static void Store(float& place, float value) {
    if constexpr (kShared)
      std::atomic_ref(place).store(value, std::memory_order_relaxed);
    else
      place = value;
  }

  // One weight: read it and its slots, step, write back. `stride` is the distance from slot to slot.
  template <bool kShared>
  void One(const Rule& rule, float& w, float* slots, std::size_t stride, float x, float delta) const {
    float local[kSlots + 1];
    for (int s = 0; s < kSlots; ++s) local[s] = Load<kShared>(slots[static_cast<std::size_t>(s) * stride]);
    Store<kShared>(w, rule.Step(Load<kShared>(w), local, x, delta));
    for (int s = 0; s < kSlots; ++s) Store<kShared>(slots[static_cast<std::size_t>(s) * stride], local[s]);
  }

  // Weights with their state beside them, eight at a time; returns how many were done.
  static std::size_t EightAtOnce([[maybe_unused]] const Rule& rule, [[maybe_unused]] float* weights,
                                 [[maybe_unused]] std::span<const std::uint32_t> rows,
                                 [[maybe_unused]] std::span<const float> values, [[maybe_unused]] float delta) {
    std::size_t done = 0;
#if defined(__AVX2__)
    const Lanes deltas = Broadcast(delta);
    for (; done + 8 <= rows.size(); done += 8) {
      const auto place = [&](int i) { return weights + std::uint64_t{rows[done + static_cast<std::size_t>(i)]} * 4; };
      EightRecords records(place);
      records.fields[0] = rule.Step(records.fields[0], records.fields + 1, _mm256_loadu_ps(&values[done]), deltas);
      records.Store(place);
    }
#endif
    return done;
  }

  template <bool kShared>
  void Rows(Parameters& parameters, std::size_t b, std::span<const std::uint32_t> rows, std::span<const float> values,
            std::span<const float> deltas) {
    const Rule rule = rule_;  // a local copy: its numbers stay in registers
    const std::size_t width = deltas.size();
    float* const weights = parameters.Row(b, 0);
    float* const slots = Slots(parameters, b, 0);
    const std::uint64_t stride = parameters.stride(b), slots_stride = parameters.plain(b) ? width * kSlots : stride;
    if (width == 1) {
      const float delta = deltas[0];
      std::size_t i = 0;
      if constexpr (!kShared && kSlots > 0 && kSlots < 4)
        if (stride == 4) i = EightAtOnce(rule, weights, rows, values, delta);
      for (; i < rows.size(); ++i)
        One<kShared>(rule, weights[rows[i] * stride], slots + rows[i] * slots_stride, 1, values[i], delta);
      return;
    }
    for (std::size_t i = 0; i < rows.size(); ++i)
      for (std::size_t k = 0; k < width; ++k)
        One<kShared>(rule, weights[rows[i] * stride + k], slots + rows[i] * slots_stride + k, width, values[i],
                     deltas[k]);
  }

  template <bool kShared>
  void Scaled(float* weights, float* state, std::span<const float> values, float delta) {
    const Rule rule = rule_;
    const std::size_t width = values.size();
    const float* const x = values.data();
    if constexpr (kShared) {
      for (std::size_t j = 0; j < width; ++j) One<true>(rule, weights[j], state + j, width, x[j], delta);
    } else {
#pragma omp simd
      for (std::size_t j = 0; j < width; ++j) One<false>(rule, weights[j], state + j, width, x[j], delta);
    }
  }

  const std::string_view name_;
  Rule rule_;
};

// The pull of l2 on a gradient and of l1 on a weight, for rules that know neither by nature.
struct Penalty {
  float l1, l2;
  explicit Penalty(const OptimizerOptions& options)
      : l1(static_cast<float>(options.l1)), l2(static_cast<float>(options.l2)) {}
  template <class F>
  F Gradient(F g, F w) const {
    return g + l2 * w;
  }
  template <class F, class Rate>
  F Shrink(F w, Rate rate) const {
    if (l1 == 0) return w;
    const F size = Abs(w) - rate * l1;
    return WherePositive(size, CopySign(size, w), w * 0.0f);
  }
};

}  // namespace freshet::optimize
