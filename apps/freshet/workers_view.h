#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "train/worker_report.h"

namespace freshet::cli {

using train::GatherWorkers;
using WorkerLine = train::WorkerReport;

nlohmann::ordered_json ToJson(const WorkerLine& worker);
// The mean step: how long it takes, and which share of that each part has.
nlohmann::ordered_json StepJson(const std::vector<WorkerLine>& workers);
// A table, where a step's time goes, what compression saved, and stragglers by name; "" for no workers.
std::string ToText(const std::vector<WorkerLine>& workers, bool compressed);

}  // namespace freshet::cli
