#pragma once

#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"

namespace freshet::optimize {

// Limited-memory BFGS (Liu, Nocedal 1989) with a backtracking line search to sufficient decrease: for objectives whose
// whole gradient can be computed. Deterministic.
//
// It may have a range of a point whose other ranges others have: each of them then has one of these, with the same
// options and of the same objective, and all call Step together. All that it keeps is of its range. Decisions are made
// of numbers that all have with the same bits: values of the objective, and inner products, which are summed up.
class Lbfgs {
 public:
  // The objective at `at`; fills `gradient`. Where these are a range, the value is that of the whole point, the same for
  // all.
  using Objective = std::function<Result<double>(std::span<const float> at, std::span<float> gradient)>;
  // Adds up, in place and to the same bits for all, numbers that each has of its range.
  using Sum = std::function<Result<void>(std::span<double> parts)>;
  struct Options {
    int memory = 10;          // pairs of steps and gradient changes it remembers
    double tolerance = 1e-5;  // done when |gradient| <= tolerance · max(1, |x|)
    int most_trials = 20;     // of one line search
  };

  // Without `sum` the point is whole.
  Lbfgs(std::vector<float> start, Options options, Objective objective, Sum sum = {});

  // One iteration. False when there is nothing left to gain.
  Result<bool> Step();
  std::span<const float> point() const { return x_; }
  double value() const { return value_; }
  std::size_t remembered() const { return 2 * pairs_.size() * x_.size(); }  // floats, of steps and gradient changes

 private:
  Result<void> Total(std::span<double> parts) const { return sum_ ? sum_(parts) : Result<void>(); }
  Result<double> Total(double part) const;
  Result<std::vector<double>> Direction() const;
  struct Pair {
    std::vector<float> step, change;
    double product = 0, change_square = 0;  // step · change, change · change
  };
  const Options options_;
  const Objective objective_;
  const Sum sum_;
  std::vector<float> x_, gradient_;
  double value_ = 0;
  bool started_ = false;
  std::deque<Pair> pairs_;
};

}  // namespace freshet::optimize
