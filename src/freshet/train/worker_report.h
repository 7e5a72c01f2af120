#pragma once

#include <optional>
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
  std::optional<strategy::server::Report> server{};  // of a parameter server
};

// Of all workers, by rank; all call it.
Result<std::vector<WorkerReport>> GatherWorkers(fabric::Collectives& collectives, const strategy::StepTimes& times,
                                                const std::optional<strategy::server::Report>& server = {});

}  // namespace freshet::train
