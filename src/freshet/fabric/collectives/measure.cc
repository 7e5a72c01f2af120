#include "fabric/collectives/measure.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

namespace freshet::fabric {
namespace {

constexpr std::uint64_t kFewestSamples = 3, kMostSamples = 1000;
constexpr double kSampleSeconds = 50e-6;  // sums shorter than this are timed many at once

struct Plan {
  std::uint64_t samples = kFewestSamples;
  std::uint64_t sums_each = 1;
};

Plan PlanFor(double once, double seconds) {
  Plan plan;
  once = std::max(once, 1e-9);
  plan.sums_each = static_cast<std::uint64_t>(std::max(1.0, kSampleSeconds / once));
  const double samples = seconds / (once * static_cast<double>(plan.sums_each));
  plan.samples = static_cast<std::uint64_t>(
      std::clamp(samples, static_cast<double>(kFewestSamples), static_cast<double>(kMostSamples)));
  return plan;
}

// What rank 0 has, to all.
template <class T>
Result<void> FromRankZero(Collectives& collectives, T& thing) {
  static_assert(std::is_trivially_copyable_v<T>);
  return collectives.Broadcast(std::as_writable_bytes(std::span(&thing, 1)), 0);
}

Result<void> CheckSum(Collectives& collectives, Algorithm algorithm, std::span<float> values) {
  const Fabric& fabric = collectives.fabric();
  std::fill(values.begin(), values.end(), static_cast<float>(fabric.rank() + 1));
  TRY(collectives.AllReduce(values, algorithm));
  const auto right = static_cast<float>(fabric.size() * (fabric.size() + 1) / 2);
  const auto wrong = std::find_if(values.begin(), values.end(), [&](float value) { return value != right; });
  if (wrong == values.end()) return {};
  return Error{Code::kCorrupt,
               Str("the ", NameOf(algorithm), " all-reduce of ", values.size(), " floats gives ", *wrong, " at ",
                   wrong - values.begin(), " of rank ", fabric.rank(), ", not ", right)};
}

}  // namespace

Result<Measurement> MeasureOne(Collectives& collectives, const base::Clock& clock, Algorithm algorithm,
                               std::uint64_t bytes, double seconds) {
  std::vector<float> values(bytes / sizeof(float));
  TRY(CheckSum(collectives, algorithm, values));
  std::fill(values.begin(), values.end(), 0.0F);  // which stay what they are, however often they are summed
  TRY(collectives.Barrier());
  const base::Clock::Duration begin = clock.Now();
  TRY(collectives.AllReduce(values, algorithm));
  Plan plan = PlanFor(base::Seconds(clock.Now() - begin), seconds);
  TRY(FromRankZero(collectives, plan));
  std::vector<double> times;
  for (std::uint64_t sample = 0; sample < plan.samples; ++sample) {
    TRY(collectives.Barrier());
    const base::Clock::Duration start = clock.Now();
    for (std::uint64_t i = 0; i < plan.sums_each; ++i) TRY(collectives.AllReduce(values, algorithm));
    times.push_back(base::Seconds(clock.Now() - start) / static_cast<double>(plan.sums_each));
  }
  std::sort(times.begin(), times.end());
  Measurement measurement{.algorithm = algorithm,
                          .bytes = bytes,
                          .sums = plan.samples * plan.sums_each,
                          .best_seconds = times.front(),
                          .median_seconds = times[times.size() / 2]};
  TRY(FromRankZero(collectives, measurement));
  return measurement;
}

Result<std::vector<Measurement>> Measure(Collectives& collectives, const base::Clock& clock,
                                         const MeasureOptions& options) {
  std::vector<Measurement> rows;
  const std::vector<Algorithm> algorithms =
      options.algorithms.empty() ? UsableAlgorithms(collectives.fabric()) : options.algorithms;
  for (const Algorithm algorithm : algorithms) {
    for (const std::uint64_t bytes : options.sizes)
      rows.push_back(TRY(MeasureOne(collectives, clock, algorithm, bytes, options.seconds_each)));
  }
  return rows;
}

std::vector<Algorithm> UsableAlgorithms(const Fabric& fabric) {
  std::vector<Algorithm> algorithms = {Algorithm::kCentral, Algorithm::kRing, Algorithm::kTree, Algorithm::kHalving,
                                       Algorithm::kDirect};
  if (fabric.has_native()) algorithms.push_back(Algorithm::kNative);
  std::set<std::string> hosts;
  for (int rank = 0; rank < fabric.size(); ++rank) hosts.insert(fabric.host(rank));
  if (hosts.size() > 1 && hosts.size() < static_cast<std::size_t>(fabric.size()))
    algorithms.push_back(Algorithm::kHierarchical);
  return algorithms;
}

}  // namespace freshet::fabric
