#pragma once

#include <span>
#include <vector>

#include "base/result.h"

namespace freshet::deploy {

struct SamplingRateOptions {
  double rate = 0.1;      // rows of the history that join an iteration, as a share of the history
  bool adaptive = false;  // let drift lower the rate
  double least = 0;       // adaptive: it never falls below

  Result<void> Validate() const;
};

// How much of the history joins an iteration. Fixed, or adaptive: a drift makes the rate a quarter of what it was, so
// that the rows in the buffer weigh more; each later iteration before which no drift came multiplies it by 4^(1/10), so
// that ten of them make up for one drift. It stays between `rate` and the larger of `least` and rate / 1024: however
// many drifts there were, it comes back in fifty iterations.
//
// Threads: none of its own; one thread at a time.
class SamplingRate {
 public:
  explicit SamplingRate(const SamplingRateOptions& options);  // which are valid

  double value() const { return value_; }
  void OnDrift();
  void OnIteration();  // one has finished

  std::vector<double> Save() const;
  // False, and nothing has changed, when the numbers cannot come from Save. A rate outside of what the options now
  // allow is moved to the nearest that they do.
  [[nodiscard]] bool Load(std::span<const double> state);

 private:
  double Allowed(double value) const;

  SamplingRateOptions options_;
  double value_;
  bool drifted_ = false;  // since the last iteration
};

}  // namespace freshet::deploy
