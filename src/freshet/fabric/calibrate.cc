#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "fabric/collectives.h"

namespace freshet::fabric {
namespace {

struct Trial {
  std::size_t bytes;
  int repeats;
};
constexpr Trial kTrials[] = {{4 << 10, 20}, {64 << 10, 10}, {1 << 20, 4}, {16 << 20, 2}, {64 << 20, 1}};
constexpr double kHopeless = 4.0;  // times the best: not tried with more bytes
constexpr double kTooSlow = 0.05;  // seconds of the best for one sum: larger ones are not tried
constexpr std::size_t kMostText = 512;

struct Candidate {
  Algorithm algorithm;
  std::uint8_t tried = 1;  // a byte, as rank 0 tells the others
};

std::vector<Candidate> CandidatesFor(const Fabric& fabric) {
  std::vector<Candidate> candidates = {
      {Algorithm::kCentral}, {Algorithm::kRing}, {Algorithm::kTree}, {Algorithm::kHalving}, {Algorithm::kDirect}};
  if (fabric.has_native()) candidates.push_back({Algorithm::kNative});
  std::set<std::string> hosts;
  for (int rank = 0; rank < fabric.size(); ++rank) hosts.insert(fabric.host(rank));
  if (hosts.size() > 1 && hosts.size() < static_cast<std::size_t>(fabric.size()))
    candidates.push_back({Algorithm::kHierarchical});
  return candidates;
}

Result<double> Seconds(Collectives& collectives, const base::Clock& clock, std::span<float> values, Algorithm algorithm,
                       int repeats) {
  TRY(collectives.AllReduce(values, algorithm));
  TRY(collectives.Barrier());
  const base::Clock::Duration start = clock.Now();
  for (int i = 0; i < repeats; ++i) TRY(collectives.AllReduce(values, algorithm));
  return base::Seconds(clock.Now() - start) / repeats;
}

// Between the size of the last trial and this one's, where they are compared by ratio.
std::uint64_t FromBytes(const AlgorithmTable& table, std::size_t trial) {
  if (table.entries.empty()) return 0;
  return static_cast<std::uint64_t>(
      std::sqrt(static_cast<double>(kTrials[trial - 1].bytes) * static_cast<double>(kTrials[trial].bytes)));
}

}  // namespace

Result<void> Collectives::Calibrate(const base::Clock& clock) {
  if (fabric_.size() == 1) return {};
  std::vector<Candidate> candidates = CandidatesFor(fabric_);
  std::vector<float> values;
  AlgorithmTable table;
  for (std::size_t trial = 0; trial < std::size(kTrials); ++trial) {
    // What to try is rank 0's decision, since clocks differ.
    std::vector<std::byte> plan;
    for (const Candidate& candidate : candidates) plan.push_back(static_cast<std::byte>(candidate.tried));
    TRY(Broadcast(plan, 0));
    values.assign(kTrials[trial].bytes / sizeof(float), 0.0F);
    std::vector<double> seconds(candidates.size(), HUGE_VAL);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      candidates[i].tried = static_cast<std::uint8_t>(plan[i]);
      if (candidates[i].tried == 0) continue;
      seconds[i] = TRY(Seconds(*this, clock, values, candidates[i].algorithm, kTrials[trial].repeats));
    }
    const auto best = static_cast<std::size_t>(std::min_element(seconds.begin(), seconds.end()) - seconds.begin());
    if (seconds[best] == HUGE_VAL) break;
    if (table.entries.empty() || table.entries.back().algorithm != candidates[best].algorithm)
      table.entries.push_back({FromBytes(table, trial), candidates[best].algorithm});
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (seconds[i] > kHopeless * seconds[best] || seconds[best] > kTooSlow) candidates[i].tried = 0;
    }
  }
  std::string text = table.ToText();
  text.resize(kMostText, ' ');
  TRY(Broadcast(std::as_writable_bytes(std::span(text)), 0));
  options_.table = TRY(AlgorithmTable::FromText(Trim(text)));
  return {};
}

}  // namespace freshet::fabric
