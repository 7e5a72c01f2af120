#include "strategy/local.h"

#include <algorithm>

namespace freshet::strategy {

Result<double> Local::Run(const data::Batch& rows, std::span<float> scores) {
  if (batch_ == 1)
    return world_.model.Update(world_.parameters, rows, world_.optimizer, workspace_, scores,
                               optimize::Optimizer::Sharing::kAlone);
  double loss = 0;
  for (std::size_t begin = 0; begin < rows.rows; begin += batch_) {
    const std::size_t end = std::min(begin + batch_, rows.rows), width = world_.model.scores();
    loss += TRY(Step(rows.Slice(begin, end), scores.subspan(begin * width, (end - begin) * width)));
  }
  return loss;
}

Result<double> Local::Step(const data::Batch& rows, std::span<float> scores) {
  if (observes_) world_.model.Observe(world_.parameters, rows, world_.optimizer);
  TRY(world_.model.Reserve(rows.rows, workspace_));
  gradient_.Clear();
  workspace_.step = world_.optimizer.step();
  const double loss = world_.model.LossAndGradient(world_.parameters, rows, workspace_, gradient_, scores);
  double weight = 0;
  for (std::size_t r = 0; r < rows.rows; ++r) weight += rows.weight(r);
  world_.model.Apply(world_.parameters, gradient_, weight, world_.optimizer, workspace_);
  return loss;
}

}  // namespace freshet::strategy
