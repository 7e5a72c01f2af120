#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/trace.h"
#include "fabric/collectives/collectives.h"
#include "strategy/strategy.h"

namespace freshet::strategy::scheduled {

// One member of a descent by coordinates, whatever these are: rounds that all make together, and how far they have come.
// Coordinates belong to kShares shares, by a hash, and each member has some shares.
//
// Ownership: borrows everything, which outlives it. Threads: one. Blocking and failure: as the fabric's.
class Descending {
 public:
  static constexpr std::uint64_t kShares = 16;
  struct World {
    fabric::Collectives* collectives = nullptr;  // null: there are no others
    const base::Clock& clock;
    base::Trace* trace = nullptr;
  };
  virtual ~Descending() = default;

  // Makes the next updates with all others. False: some member wished to stop, and nothing was changed.
  Result<bool> Round(bool stop);
  // What becomes less by that; all find it together.
  virtual Result<double> Objective() = 0;

  std::uint64_t coordinates() const { return coordinates_; }
  std::uint64_t updates() const { return updates_; }  // of single coordinates
  std::uint64_t rounds() const { return rounds_; }    // in each of which some are updated at once
  std::uint64_t put_off() const { return put_off_; }
  StepTimes& times() { return times_; }

 protected:
  explicit Descending(const World& world) : world_(world) {}
  virtual Result<bool> MakeRound(bool stop) = 0;

  int rank() const { return world_.collectives == nullptr ? 0 : world_.collectives->fabric().rank(); }
  int size() const { return world_.collectives == nullptr ? 1 : world_.collectives->fabric().size(); }
  // Shares are dealt out in their order: from this one on they are of a member, up to the next one's first.
  std::uint64_t FirstShare(int member) const { return fabric::ChunkBegin(kShares, member, size()); }
  bool Mine(std::uint64_t share) const { return FirstShare(rank()) <= share && share < FirstShare(rank() + 1); }
  // What each member tells all, by rank.
  Result<std::vector<std::vector<std::byte>>> Gather(std::span<const std::byte> mine);

  const World world_;
  std::uint64_t coordinates_ = 0, updates_ = 0, rounds_ = 0, put_off_ = 0;
  StepTimes times_;
};

}  // namespace freshet::strategy::scheduled
