#include "strategy/scheduled/descending.h"

#include <algorithm>

namespace freshet::strategy::scheduled {

Result<bool> Descending::Round(bool stop) {
  const base::Span span(world_.trace, "step", base::Trace::kTraining, {.step = rounds_});
  const auto begun = world_.clock.Now();
  const double others = times_.total();
  if (!TRY(MakeRound(stop))) return false;
  ++times_.steps;
  times_.compute += std::max(base::Seconds(world_.clock.Now() - begun) - (times_.total() - others), 0.0);
  return true;
}

Result<std::vector<std::vector<std::byte>>> Descending::Gather(std::span<const std::byte> mine) {
  const fabric::Fabric& fabric = world_.collectives->fabric();
  const std::uint64_t sent = fabric.bytes_sent(), shared = fabric.bytes_shared();
  const base::Span span(world_.trace, "exchange", base::Trace::kTraining, {.step = rounds_});
  const auto begun = world_.clock.Now();
  auto letters = TRY(world_.collectives->Gather(mine));
  times_.exchange += base::Seconds(world_.clock.Now() - begun);
  times_.bytes_sent += fabric.bytes_sent() - sent;
  times_.bytes_shared += fabric.bytes_shared() - shared;
  times_.bytes_dense = times_.bytes_sent + times_.bytes_shared;
  return letters;
}

}  // namespace freshet::strategy::scheduled
