#include <algorithm>
#include <cmath>

#include "base/cores.h"
#include "base/random.h"
#include "base/str.h"
#include "fabric/collectives/measure.h"
#include "fabric/subset.h"
#include "simulate/calibrate.h"
#include "strategy/gradient_sum.h"

namespace freshet::simulate {
namespace {

using fabric::Algorithm;
using fabric::Collectives;

constexpr std::uint64_t kShort = 1 << 10, kMiddle = 256 << 10, kLong = 16 << 20, kLongBetweenHosts = 4 << 20;

// Seconds of a short sum between two, which is one message each way at once, and bytes a second of a long one, of which
// half is added and half copied.
struct Pair {
  double message = 0, rate = 0;
};

Result<Pair> MeasurePair(Collectives& pair, const base::Clock& clock, std::uint64_t bytes, double seconds) {
  const auto swap = TRY(fabric::MeasureOne(pair, clock, Algorithm::kHalving, kShort, seconds));
  const auto ring = TRY(fabric::MeasureOne(pair, clock, Algorithm::kRing, bytes, seconds));
  const double moving = std::max(ring.median_seconds - 4 * swap.median_seconds, 1e-6);
  return Pair{swap.median_seconds, static_cast<double>(bytes) / moving};
}

// Seconds for a byte of rows that two members touched, half of them both, from the gradient to the sum.
Result<double> MeasureRows(Collectives& pair, const base::Clock& clock, const Pair& exchange, double seconds) {
  constexpr std::uint64_t kFeatures = 1 << 20;
  constexpr std::size_t kTouched = 8192;
  model::ModelConfig config;
  config.features = kFeatures;
  const auto model = TRY(model::Model::Make(config));
  optimize::HeapMemory memory;
  const optimize::Parameters parameters = TRY(model->NewParameters(memory));
  optimize::Gradient gradient = TRY(model->NewGradient(memory));
  auto sum = TRY(strategy::GradientSum::Make({}, pair, *model));
  base::Random common(1, "rows"), own(static_cast<std::uint64_t>(pair.fabric().rank()) + 2, "rows");
  std::vector<std::uint32_t> rows;
  for (std::size_t i = 0; i < kTouched; ++i)
    rows.push_back(static_cast<std::uint32_t>((i % 2 == 0 ? common : own).Below(kFeatures)));
  std::vector<double> times;
  double bytes = 0;
  const int rounds = std::clamp(static_cast<int>(seconds / 2e-3), 5, 1000);
  for (int round = 0; round < rounds; ++round) {
    gradient.Clear();
    sum.Begin(gradient, 0);
    for (const std::uint32_t row : rows) *gradient.blocks[0].Touch(row) += 1;
    *gradient.blocks[1].Touch(0) += 1;
    const auto touched = static_cast<double>(gradient.blocks[0].touched().size());
    TRY(pair.Barrier());
    const auto begun = clock.Now();
    TRY(sum.Finish(gradient, parameters));
    times.push_back(base::Seconds(clock.Now() - begun));
    bytes = 2 * sizeof(float) * (touched + static_cast<double>(gradient.blocks[0].touched().size()));
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  // Two blocks, each of which is exchanged in two rounds, a byte of four of what was touched with each.
  const double travelling = 4 * exchange.message + bytes / 2 / exchange.rate;
  return std::max(times[times.size() / 2] - travelling, 0.1 * times[times.size() / 2]) / bytes;
}

std::vector<int> OfHost(const fabric::Fabric& fabric, const std::string& host) {
  std::vector<int> ranks;
  for (int rank = 0; rank < fabric.size(); ++rank)
    if (fabric.host(rank) == host) ranks.push_back(rank);
  return ranks;
}

// What some members do while the others wait; each time with tags of its own.
template <class Measure>
Result<void> Among(fabric::Fabric& fabric, Collectives& all, std::vector<int> ranks, int turn, const Measure& measure) {
  if (std::count(ranks.begin(), ranks.end(), fabric.rank()) > 0) {
    fabric::Subset some(fabric, std::move(ranks), static_cast<fabric::Tag>(turn) << 48);
    Collectives collectives(some);
    TRY(measure(collectives));
  }
  return all.Barrier();
}

}  // namespace

Result<void> MeasureExchange(fabric::Fabric& fabric, const base::Clock& clock, double seconds,
                             Calibration& calibration) {
  if (fabric.size() < 2) return Error{Code::kInvalid, "exchanges are measured between 2 workers or more, this is one"};
  Collectives all(fabric);
  fabric::sim::Platform& platform = calibration.platform;
  platform.message_us = 1;
  const std::vector<int> here = OfHost(fabric, fabric.host(0));
  const auto crowd = static_cast<double>(here.size());
  const int cores = base::AvailableCores();
  Pair within;
  if (here.size() > 1)
    TRY(Among(fabric, all, {here[0], here[1]}, 1, [&](Collectives& pair) -> Result<void> {
      within = TRY(MeasurePair(pair, clock, kLong, seconds));
      platform.local_us = std::max(within.message * 1e6 - platform.message_us, 0.1);
      platform.copy_gb_s = platform.add_gb_s = within.rate / 1e9;
      platform.short_gb_s = TRY(MeasurePair(pair, clock, kMiddle, seconds)).rate / 1e9;
      platform.local_gb_s = 1e6;  // it is cores that move the bytes
      calibration.work["rows"] = TRY(MeasureRows(pair, clock, within, seconds));
      return {};
    }));
  if (here.size() > static_cast<std::size_t>(cores))
    TRY(Among(fabric, all, here, 2, [&](Collectives& crowded) -> Result<void> {
      const auto sum = TRY(fabric::MeasureOne(crowded, clock, Algorithm::kHalving, kShort, seconds));
      const double round = sum.median_seconds * 1e6 / std::ceil(std::log2(crowd));  // each takes a message in each
      const double each = platform.message_us * crowd / cores;
      // Where all are awake, a message may come sooner than between two whom nobody else keeps awake.
      platform.local_us = std::clamp(round - each, 0.1, platform.local_us);
      platform.crowded_us = std::max(0.0, (round - platform.local_us - each) * cores / crowd);
      return {};
    }));
  for (int other = 1; other < fabric.size(); ++other) {
    if (fabric.host(other) == fabric.host(0)) continue;
    return Among(fabric, all, {0, other}, 3, [&](Collectives& pair) -> Result<void> {
      const Pair between = TRY(MeasurePair(pair, clock, kLongBetweenHosts, seconds));
      platform.link_us = std::max(between.message * 1e6 - platform.message_us, 0.2) / 2;  // there are two on the way
      platform.link_gbit = between.rate * 8 / 1e9;
      platform.share = 1;
      return {};
    });
  }
  return {};
}

}  // namespace freshet::simulate
