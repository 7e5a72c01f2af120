#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "fabric/collectives.h"
#include "strategy/strategy.h"

namespace freshet::cli {

// What is shown of one worker.
struct WorkerLine {
  int rank = 0;
  std::string host;
  strategy::StepTimes times;
};

// Of all workers, by rank; all call it.
Result<std::vector<WorkerLine>> GatherWorkers(fabric::Collectives& collectives, const strategy::StepTimes& mine);

nlohmann::ordered_json ToJson(const WorkerLine& worker);
// The mean step: how long it takes, and which share of that each part has.
nlohmann::ordered_json StepJson(const std::vector<WorkerLine>& workers);
// A table, where a step's time goes, what compression saved, and stragglers by name; "" for no workers.
std::string ToText(const std::vector<WorkerLine>& workers, bool compressed);

}  // namespace freshet::cli
