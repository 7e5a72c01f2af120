#include <algorithm>
#include <cmath>

#include "deploy/replay/replay.h"

namespace freshet::deploy {
namespace {

template <class Value>
Spread SpreadOf(const std::vector<const ReplayRun*>& runs, const Value& value) {
  Spread spread;
  const auto count = static_cast<double>(runs.size());
  for (const ReplayRun* run : runs) spread.mean += value(*run) / count;
  for (const ReplayRun* run : runs) spread.deviation += std::pow(value(*run) - spread.mean, 2);
  spread.deviation = count > 1 ? std::sqrt(spread.deviation / (count - 1)) : 0;
  return spread;
}

const ReplayRun* Find(const ReplayReport& report, Method method, std::uint64_t seed) {
  for (const ReplayRun& run : report.runs)
    if (run.method == method && run.seed == seed) return &run;
  return nullptr;
}

}  // namespace

std::vector<MethodSummary> Summarise(const ReplayReport& report) {
  std::vector<MethodSummary> summaries;
  for (const ReplayRun& first : report.runs) {
    if (first.seed != report.runs[0].seed) break;
    std::vector<const ReplayRun*> runs;
    for (const ReplayRun& run : report.runs)
      if (run.method == first.method) runs.push_back(&run);
    MethodSummary summary;
    summary.method = first.method;
    summary.mean_error = SpreadOf(runs, [](const ReplayRun& run) { return run.mean_error; });
    summary.final_error = SpreadOf(runs, [](const ReplayRun& run) { return run.final_error; });
    summary.steps = SpreadOf(runs, [](const ReplayRun& run) { return static_cast<double>(run.steps); }).mean;
    summary.seconds = SpreadOf(runs, [](const ReplayRun& run) { return run.seconds; }).mean;
    summary.iterations = SpreadOf(runs, [](const ReplayRun& run) { return static_cast<double>(run.iterations); }).mean;
    for (const ReplayRun* run : runs) summary.longest = std::max(summary.longest, run->longest);
    if (Find(report, Method::kVelox, first.seed) != nullptr) {
      const auto velox = [&](const ReplayRun& run) { return Find(report, Method::kVelox, run.seed); };
      summary.error_to_velox =
          SpreadOf(runs, [&](const ReplayRun& run) { return run.mean_error / velox(run)->mean_error; });
      summary.steps_to_velox = SpreadOf(runs, [&](const ReplayRun& run) {
        return static_cast<double>(run.steps) / static_cast<double>(velox(run)->steps);
      });
    }
    summaries.push_back(summary);
  }
  return summaries;
}

}  // namespace freshet::deploy
