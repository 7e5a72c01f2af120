#include "simulate/steps.h"

#include "base/check.h"

namespace freshet::simulate {

std::uint64_t UpdatesOfStep(const strategy::StrategyOptions& options) {
  return options.kind == "allreduce" ? 1 : options.every;
}

std::uint64_t RowsOfStep(const strategy::StrategyOptions& options) { return options.batch * UpdatesOfStep(options); }

Result<StepsMade> MakeSteps(const StepsOptions& options, fabric::Fabric& fabric, base::Clock& clock,
                            const model::Model& model, optimize::Memory& memory, const data::Batch& rows,
                            std::span<float> scores) {
  fabric::Collectives collectives(fabric, options.collectives);
  optimize::OptimizerOptions rule;
  rule.kind = model.config().dense ? "momentum" : "adagrad";
  rule.schedule.rate = 1e-6;  // where there are numbers, they stay what they are
  const auto optimizer = TRY(optimize::Optimizer::Make(rule, memory));
  optimize::Parameters parameters = TRY(model.NewParameters(memory));
  TRY(optimizer->Follow(parameters));
  const auto strategy = TRY(strategy::Strategy::Make(
      options.strategy, {collectives, model, parameters, *optimizer, memory, clock, options.trace}));
  CHECK(strategy->piece() <= rows.rows);
  const data::Batch piece = rows.Slice(0, strategy->piece());
  const data::Batch mine = strategy->Share(piece);

  StepsMade made;
  base::Clock::Duration begun{};
  for (int step = 0; step <= options.steps; ++step) {
    if (step == 1) {
      TRY(collectives.Barrier());
      made.before = strategy->times();
      begun = clock.Now();
    }
    const auto waits = clock.Now();
    if (options.read) options.read(mine.rows);
    strategy->CountRead(clock.Now() - waits);
    (void)TRY(strategy->Step(piece, mine, scores));
  }
  made.seconds = base::Seconds(clock.Now() - begun);
  made.after = strategy->times();
  TRY(collectives.Barrier());
  return made;
}

}  // namespace freshet::simulate
