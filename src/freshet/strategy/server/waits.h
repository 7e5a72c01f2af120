#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "strategy/server/letters.h"

namespace freshet::strategy::server {

// Whom a worker waited for, and how long: of all answers that it needs for a step, for that which took longest.
class Waits {
 public:
  explicit Waits(int members) : seconds_(static_cast<std::size_t>(members), 0.0) {}

  void Took(const AnswerHead& answer) {
    if (answer.waited > longest_) longest_ = answer.waited, whom_ = answer.waited_for;
  }
  // How long this step was waited for, of the seconds that the worker stood still.
  double EndStep(double stood) {
    const double waited = std::min(std::exchange(longest_, 0), stood);
    const auto whom = static_cast<std::size_t>(std::exchange(whom_, -1));
    if (whom < seconds_.size()) seconds_[whom] += waited;
    return waited;
  }
  const std::vector<double>& seconds() const { return seconds_; }  // by rank

 private:
  std::vector<double> seconds_;
  double longest_ = 0;
  std::int32_t whom_ = -1;
};

}  // namespace freshet::strategy::server
