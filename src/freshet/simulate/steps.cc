#include "simulate/steps.h"

#include "base/check.h"

namespace freshet::simulate {

std::uint64_t UpdatesOfStep(const strategy::StrategyOptions& options) {
  return options.kind == "average" || options.kind == "groups" || options.kind == "gossip" ? options.every : 1;
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
  const std::size_t pieces = rows.rows / strategy->piece();

  // Updates follow one another without a meeting, and only who has the network's answer has a share of the rows.
  const bool flows = options.strategy.kind == "ring" && options.strategy.pipeline == "stash";
  StepsMade made;
  base::Clock::Duration begun{};
  for (std::size_t next = 0, step = 0; step <= static_cast<std::size_t>(options.steps) && strategy->has_rows();
       ++next) {
    const std::size_t first = next % pieces * strategy->piece();
    const data::Batch piece = rows.Slice(first, first + strategy->piece());
    const data::Batch mine = strategy->Share(piece);
    if ((mine.rows > 0 || flows) && step++ == 1) {
      if (strategy->same_place() && !flows) TRY(collectives.Barrier());
      made.before = strategy->times();
      begun = clock.Now();
    }
    const auto waits = clock.Now();
    if (options.read && mine.rows > 0) options.read(mine.rows);
    strategy->CountRead(clock.Now() - waits);
    (void)TRY(strategy->Step(piece, mine, scores));
  }
  made.seconds = base::Seconds(clock.Now() - begun);
  made.after = strategy->times();
  if (flows) TRY(strategy->Settle());
  if (strategy->same_place()) return TRY(collectives.Barrier()), made;
  while (!TRY(strategy->StepDry())) continue;  // the others have steps to make yet
  return made;
}

}  // namespace freshet::simulate
