#include "strategy/local.h"

#include <algorithm>

namespace freshet::strategy {

Local::Local(const Learner& learner, Options options, optimize::Gradient gradient)
    : learner_(learner), options_(std::move(options)), gradient_(std::move(gradient)) {
  workspace_.threads = options_.threads;
  if (!options_.goes_on) return;
  workspace_.goes_on = [goes_on = options_.goes_on, given_up = given_up_] {
    if (!goes_on()) *given_up = true;
    return !*given_up;
  };
}

Result<std::optional<double>> Local::Run(const data::Batch& rows, std::span<float> scores) {
  if (options_.batch == 1) {
    const base::Span span(learner_.trace, "compute", base::Trace::kTraining, {.step = learner_.optimizer.step()});
    return std::optional<double>(learner_.model.Update(learner_.parameters, rows, learner_.optimizer, workspace_,
                                                       scores, optimize::Optimizer::Sharing::kAlone));
  }
  double loss = 0;
  const std::size_t width = learner_.model.scores();
  for (std::size_t begin = 0; begin < rows.rows; begin += options_.batch) {
    const std::size_t end = std::min<std::size_t>(begin + options_.batch, rows.rows);
    const auto made = TRY(Step(rows.Slice(begin, end), scores.subspan(begin * width, (end - begin) * width)));
    if (!made) return made;
    loss += *made;
  }
  return std::optional<double>(loss);
}

Result<std::optional<double>> Local::Step(const data::Batch& rows, std::span<float> scores) {
  const model::Model& model = learner_.model;
  const std::uint64_t step = workspace_.step = learner_.optimizer.step();
  std::optional<base::Span> span(std::in_place, learner_.trace, "compute", base::Trace::kTraining,
                                 base::Trace::Details{.step = step});
  if (options_.observes) model.Observe(learner_.parameters, rows, learner_.optimizer);
  gradient_.Clear();
  *given_up_ = false;
  double loss = 0, weight = 0;
  const std::size_t parts = std::min<std::size_t>(options_.accumulate, rows.rows), width = model.scores();
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t first = rows.rows * part / parts, last = rows.rows * (part + 1) / parts;
    TRY(model.Reserve(last - first, workspace_));
    loss += model.LossAndGradient(learner_.parameters, rows.Slice(first, last), workspace_, gradient_,
                                  scores.subspan(first * width, (last - first) * width));
    if (*given_up_) return std::optional<double>();
  }
  for (std::size_t r = 0; r < rows.rows; ++r) weight += rows.weight(r);
  span.emplace(learner_.trace, "apply", base::Trace::kTraining, base::Trace::Details{.step = step});
  model.Apply(learner_.parameters, gradient_, weight, learner_.optimizer, workspace_);
  return std::optional<double>(loss);
}

}  // namespace freshet::strategy
