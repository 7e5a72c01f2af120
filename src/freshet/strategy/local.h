#pragma once

#include <functional>
#include <memory>

#include "strategy/strategy.h"

namespace freshet::strategy {

// One worker's updates by itself: one for each row, in order, when `batch` is 1, else one from each `batch` rows.
class Local {
 public:
  struct Options {
    std::uint64_t batch = 1;
    std::uint64_t accumulate = 1;  // parts in which a gradient is computed
    bool observes = true;          // the model looks at each batch before; else somebody else has seen to that
    int threads = 1;
    std::function<bool()> goes_on = {};  // asked within a long update; false: it is given up
  };
  Local(const Learner& learner, Options options, optimize::Gradient gradient);

  // The summed loss; nothing when an update was given up.
  Result<std::optional<double>> Run(const data::Batch& rows, std::span<float> scores);

 private:
  Result<std::optional<double>> Step(const data::Batch& rows, std::span<float> scores);

  const Learner learner_;
  const Options options_;
  optimize::Gradient gradient_;
  model::Workspace workspace_;
  const std::shared_ptr<bool> given_up_ = std::make_shared<bool>(false);  // by the update that is being computed
};

}  // namespace freshet::strategy
