#pragma once

#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"

namespace freshet::optimize {

// Limited-memory BFGS (Liu, Nocedal 1989) with a backtracking line search to sufficient decrease: for objectives whose
// whole gradient can be computed. Deterministic.
class Lbfgs {
 public:
  // The objective at `at`; fills `gradient`.
  using Objective = std::function<Result<double>(std::span<const float> at, std::span<float> gradient)>;
  struct Options {
    int memory = 10;          // pairs of steps and gradient changes it remembers
    double tolerance = 1e-5;  // done when |gradient| <= tolerance · max(1, |x|)
    int most_trials = 20;     // of one line search
  };

  Lbfgs(std::vector<float> start, Options options, Objective objective);

  // One iteration. False when there is nothing left to gain.
  Result<bool> Step();
  std::span<const float> point() const { return x_; }
  double value() const { return value_; }
  double gradient_norm() const;

 private:
  std::vector<double> Direction() const;
  struct Pair {
    std::vector<float> step, change;
    double product;
  };
  const Options options_;
  const Objective objective_;
  std::vector<float> x_, gradient_;
  double value_ = 0;
  bool started_ = false;
  std::deque<Pair> pairs_;
};

}  // namespace freshet::optimize
