#pragma once

#include "strategy/strategy.h"

namespace freshet::strategy {

// One worker's updates by itself: one for each row, in order, when `batch` is 1, else one from each `batch` rows.
// `observes`: the model looks at each batch before (Model::Observe); else somebody else has seen to that.
class Local {
 public:
  Local(const Strategy::World& world, std::size_t batch, bool observes, int threads, optimize::Gradient gradient)
      : world_(world), batch_(batch), observes_(observes), gradient_(std::move(gradient)) {
    workspace_.threads = threads;
  }
  Result<double> Run(const data::Batch& rows, std::span<float> scores);

 private:
  Result<double> Step(const data::Batch& rows, std::span<float> scores);

  const Strategy::World world_;
  const std::size_t batch_;
  const bool observes_;
  optimize::Gradient gradient_;
  model::Workspace workspace_;
};

}  // namespace freshet::strategy
