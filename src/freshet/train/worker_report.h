#pragma once

#include <string>
#include <vector>

#include "fabric/collectives/collectives.h"
#include "strategy/strategy.h"

namespace freshet::train {

// How one worker did.
struct WorkerReport {
  int rank = 0;
  std::string host;
  strategy::StepTimes times;
};

// Of all workers, by rank; all call it.
Result<std::vector<WorkerReport>> GatherWorkers(fabric::Collectives& collectives, const strategy::StepTimes& mine);

}  // namespace freshet::train
