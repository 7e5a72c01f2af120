#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "optimize/gradient.h"
#include "optimize/parameters.h"
#include "optimize/schedule.h"

namespace freshet::optimize {

struct OptimizerOptions {
  std::string kind = "adaptive";
  Schedule schedule;
  double l1 = 0, l2 = 0;                              // applied to the coordinates an update touches
  double momentum = 0.9;                              // momentum
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  // adam, adagrad
  double ftrl_beta = 1;                               // ftrl
};

// Applies gradients to parameters, and keeps what it must remember of earlier ones: `slots` floats for each float of
// theirs, slot by slot within a row. They lie beside the parameters' row where its block has room for that, else in
// `state`, which has the same blocks and rows.
//
// Threads: one object belongs to one thread; threads that update the same parameters use siblings. Where two of them
// may touch the same row they say Sharing::kShared: every access is then a relaxed atomic, so that there is no data
// race and each number read is one that was written, though updates may be lost. Follow may run beside a sibling's
// updates.
class Optimizer {
 public:
  enum class Sharing { kAlone, kShared };

  static Result<std::unique_ptr<Optimizer>> Make(const OptimizerOptions& options, Memory& memory);
  static std::vector<std::string> Kinds();
  virtual ~Optimizer() = default;

  virtual std::string_view name() const = 0;
  virtual int slots() const = 0;

  // Makes state for these parameters (at zero), or grows it after they have grown.
  Result<void> Follow(const Parameters& parameters);
  // Another optimizer over the same state, with a step and rate of its own: one for each thread that updates at once.
  virtual std::unique_ptr<Optimizer> Sibling() const = 0;
  Parameters& state() { return *state_; }
  const Parameters& state() const { return *state_; }

  // Starts an update: the rate follows the schedule.
  void BeginStep() {
    if (steady_)
      ++step_;
    else
      SetStep(step_ + 1);
  }
  void SetStep(std::uint64_t step);
  void SetProgress(double progress) { progress_ = progress; }
  // Multiplies every rate of the schedule from here on.
  void SetScale(double scale) {
    scale_ = scale;
    SetStep(step_);
  }
  std::uint64_t step() const { return step_; }
  double rate() const { return rate_; }
  const OptimizerOptions& options() const { return options_; }

  // Rows of block b named by `rows`, each with the gradient deltas[k] * values[i] at its k-th float (a linear layer
  // over sparse features: values are the features, deltas the derivatives by the outputs). A row that stands twice
  // among eight neighbours, as hashing can make it, may take only one of its two steps.
  virtual void UpdateRows(Parameters& parameters, std::size_t b, std::span<const std::uint32_t> rows,
                          std::span<const float> values, std::span<const float> deltas, Sharing sharing) = 0;
  // One row with the gradient delta * values (a linear layer over dense features).
  virtual void UpdateScaled(Parameters& parameters, std::size_t b, std::uint64_t row, std::span<const float> values,
                            float delta, Sharing sharing) = 0;
  // One row with any gradient.
  virtual void UpdateRow(Parameters& parameters, std::size_t b, std::uint64_t row, std::span<const float> gradient) = 0;
  // Rows [first, last) with the gradient factor · values, row after row. Different rows may be updated by different
  // threads at once.
  virtual void UpdateDense(Parameters& parameters, std::size_t b, std::uint64_t first, std::uint64_t last,
                           const float* values, float factor) = 0;
  // Every row a gradient touches.
  void Apply(Parameters& parameters, const Gradient& gradient);
  // Of one block, as far as it concerns rows [first, last).
  void ApplyBlock(Parameters& parameters, std::size_t b, const BlockGradient& block, std::uint64_t first,
                  std::uint64_t last);
  // Of a block with a dense gradient, rows [first, last): that is factor · values, row after row.
  void ApplyDense(Parameters& parameters, std::size_t b, std::uint64_t first, std::uint64_t last, const float* values,
                  float factor);
  // Tells a scale-aware rule how large the features of these rows are, before Apply brings gradients without them.
  virtual void ObserveRows(Parameters& parameters, std::size_t b, std::span<const std::uint32_t> rows,
                           std::span<const float> values) = 0;
  virtual void ObserveScaled(Parameters& parameters, std::size_t b, std::uint64_t row,
                             std::span<const float> values) = 0;
  // What was summed up over all gradients so far counts `keep` times from here on: rates that had fallen rise again. A
  // rule that has no such sums, or forgets by itself, stays as it is.
  virtual void Fade(Parameters& parameters, double keep) = 0;
  // Brings rows and their state nearer, for an update that will follow soon.
  virtual void Prefetch(const Parameters& parameters, std::size_t b, std::span<const std::uint32_t> rows) const = 0;

 protected:
  Optimizer(const OptimizerOptions& options, Memory& memory);
  virtual void OnStep() = 0;             // after step_ and rate_ changed
  virtual bool StepMatters() const = 0;  // beyond the rate
  void ShareStateWith(Optimizer& sibling) const { sibling.state_ = state_; }

  const OptimizerOptions options_;
  Memory& memory_;
  std::uint64_t step_ = 0;
  double rate_ = 0;

 private:
  std::shared_ptr<Parameters> state_;
  const Schedule::Factor factor_;
  double progress_ = 0, scale_ = 1;
  bool steady_ = false;  // the next step is like this one
};

}  // namespace freshet::optimize
