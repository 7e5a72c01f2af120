#include <algorithm>
#include <cmath>

#include "fabric/collectives/collectives.h"
#include "fabric/collectives/measure.h"

namespace freshet::fabric {
namespace {

constexpr std::uint64_t kSizes[] = {4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20};  // bytes
constexpr double kSecondsEach = 0.005;
constexpr double kHopeless = 4.0;  // times the best: not tried with more bytes
constexpr double kTooSlow = 0.05;  // seconds of the best for one sum: larger ones are not tried

}  // namespace

// What rank 0 measured is what all get, so all come to the same decisions on the way.
Result<void> Collectives::Calibrate(const base::Clock& clock) {
  if (fabric_.size() == 1) return {};
  std::vector<Algorithm> candidates = UsableAlgorithms(fabric_);
  AlgorithmTable table;
  std::uint64_t last = 0;
  for (const std::uint64_t bytes : kSizes) {
    std::vector<Measurement> rows;
    for (const Algorithm algorithm : candidates)
      rows.push_back(TRY(MeasureOne(*this, clock, algorithm, bytes, kSecondsEach)));
    const auto faster = [](const Measurement& a, const Measurement& b) { return a.median_seconds < b.median_seconds; };
    const Measurement best = *std::min_element(rows.begin(), rows.end(), faster);
    // Between two sizes the change comes halfway, by ratio.
    if (table.entries.empty() || table.entries.back().algorithm != best.algorithm)
      table.entries.push_back(
          {static_cast<std::uint64_t>(std::sqrt(static_cast<double>(last) * static_cast<double>(bytes))),
           best.algorithm});
    if (best.median_seconds > kTooSlow) break;
    candidates.clear();
    for (const Measurement& row : rows) {
      if (row.median_seconds <= kHopeless * best.median_seconds) candidates.push_back(row.algorithm);
    }
    last = bytes;
  }
  options_.table = std::move(table);
  return {};
}

}  // namespace freshet::fabric
