#pragma once

#include <functional>

#include "fabric/collectives/collectives.h"
#include "model/model.h"
#include "strategy/strategy.h"

namespace freshet::simulate {

// Steps that one worker makes with others, on whatever fabric and with real rows or none.
struct StepsOptions {
  strategy::StrategyOptions strategy;
  fabric::Collectives::Options collectives;
  int steps = 3;                               // of the strategy, after one that is not counted
  std::function<void(std::size_t rows)> read;  // takes the time until this worker's rows are there; none: they are
  base::Trace* trace = nullptr;
};

struct StepsMade {
  double seconds = 0;
  strategy::StepTimes before, after;  // where this worker's time went, up to the first and to the last that count
};

// Of `rows`, of which there are as many as a step takes or more, each step takes the first; a worker that does not take
// part in every step, those that are its own. All members call it, those without rows, too.
Result<StepsMade> MakeSteps(const StepsOptions& options, fabric::Fabric& fabric, base::Clock& clock,
                            const model::Model& model, optimize::Memory& memory, const data::Batch& rows,
                            std::span<float> scores);

// Rows of a step over all workers, and updates it makes.
std::uint64_t RowsOfStep(const strategy::StrategyOptions& options);
std::uint64_t UpdatesOfStep(const strategy::StrategyOptions& options);

}  // namespace freshet::simulate
