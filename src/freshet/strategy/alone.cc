#include "strategy/alone.h"

#include "model/slices.h"

namespace freshet::strategy {

Result<std::unique_ptr<Alone>> Alone::Make(const Options& options, const Learner& learner) {
  optimize::Gradient gradient;
  if (options.batch > 1) gradient = TRY(learner.model.NewGradient(learner.memory));
  Local local(learner,
              {.batch = options.batch,
               .accumulate = options.accumulate,
               .observes = true,
               .threads = options.threads,
               .goes_on = options.batch > 1 ? options.goes_on : nullptr},
              std::move(gradient));
  return std::unique_ptr<Alone>(new Alone(options, learner, std::move(local)));
}

Alone::Alone(const Options& options, const Learner& learner, Local local)
    : options_(options), learner_(learner), local_(std::move(local)) {}

std::size_t Alone::EndOfPiece(const data::Batch& rows, std::size_t begin) const {
  if (options_.batch == 1 && options_.by_rows) return model::SliceEnd(learner_.model, rows, begin, 1);
  return Strategy::EndOfPiece(rows, begin);
}

Result<std::optional<double>> Alone::Step(const data::Batch&, const data::Batch& mine, std::span<float> scores) {
  const base::Span span(learner_.trace, "step", base::Trace::kTraining, {.step = learner_.optimizer.step()});
  return local_.Run(mine, scores);
}

}  // namespace freshet::strategy
