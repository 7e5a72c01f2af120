#include "strategy/full_batch.h"

#include <algorithm>

#include "strategy/sum_in_order.h"

namespace freshet::strategy {

Result<void> FullBatch::Timed(double StepTimes::*part, const char* name,
                              const std::function<Result<void>()>& operation) {
  if (size() == 1) return {};
  const fabric::Fabric& fabric = world_.collectives->fabric();
  const std::uint64_t sent = fabric.bytes_sent(), shared = fabric.bytes_shared();
  const base::Span span(world_.trace, name, base::Trace::kTraining);
  const auto begun = world_.clock.Now();
  TRY(operation());
  times_.*part += base::Seconds(world_.clock.Now() - begun);
  times_.bytes_sent += fabric.bytes_sent() - sent;
  times_.bytes_shared += fabric.bytes_shared() - shared;
  return {};
}

Result<void> FullBatch::AddUp(std::span<float> vector) {
  return Timed(&StepTimes::exchange, "exchange", [&] {
    return in_ranges() ? world_.collectives->ReduceScatter(vector) : world_.collectives->AllReduce(vector);
  });
}

Result<void> FullBatch::Complete(std::span<float> vector) {
  if (!in_ranges()) return {};
  return Timed(&StepTimes::exchange, "exchange", [&] { return world_.collectives->AllGather(vector); });
}

Result<std::vector<double>> FullBatch::Sum(const std::vector<double>& mine) {
  std::vector<double> sums = mine;
  TRY(Timed(&StepTimes::wait, "wait", [&]() -> Result<void> {
    sums = TRY(SumInOrder(*world_.collectives, mine));
    return {};
  }));
  return sums;
}

Result<std::vector<double>> FullBatch::Largest(const std::vector<double>& mine) {
  // Each has places of its own among the sums.
  const std::size_t count = mine.size();
  std::vector<double> all(count * static_cast<std::size_t>(size()), 0);
  std::copy(mine.begin(), mine.end(), all.begin() + static_cast<std::ptrdiff_t>(count) * rank());
  all = TRY(Sum(all));
  std::vector<double> largest(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
  for (std::size_t i = count; i < all.size(); ++i) largest[i % count] = std::max(largest[i % count], all[i]);
  return largest;
}

Result<void> FullBatch::SumOverRanges(std::span<double> parts) {
  if (!in_ranges()) return {};
  return Timed(&StepTimes::exchange, "exchange", [&]() -> Result<void> {
    const auto sums = TRY(SumInOrder(*world_.collectives, {parts.begin(), parts.end()}));
    std::copy(sums.begin(), sums.end(), parts.begin());
    return {};
  });
}

}  // namespace freshet::strategy
