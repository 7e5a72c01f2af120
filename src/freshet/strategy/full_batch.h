#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/trace.h"
#include "fabric/collectives/collectives.h"
#include "strategy/strategy.h"

namespace freshet::strategy {

// How one member of a training, alone or with others, makes steps of which each is made from all rows (L-BFGS): it
// computes loss and gradient of its share of the rows, and all add theirs up. Vectors that are as long as the model are
// held in one of two ways:
// - whole:     every member has all of each, and does all the arithmetic of a step;
// - in ranges: each member has one range of each (fabric::Chunk) and does the arithmetic of that, so that what is
//              remembered of earlier steps is divided among them; of inner products the parts are added up.
// Both send as many bytes of vectors; ranges, some twenty short sums a step besides.
//
// All members call everything but Has, has_all, Mine and times together, in the same order, and get the same bits.
// Threads: one. Ownership: borrows all it is given. Failure: as the fabric's.
class FullBatch {
 public:
  struct Options {
    bool in_ranges = false;
    bool whole = true;  // all read all rows and have a share of them; else each reads its own
  };
  struct World {
    fabric::Collectives* collectives = nullptr;  // null: there are no others
    const base::Clock& clock;
    base::Trace* trace = nullptr;
  };
  FullBatch(const Options& options, const World& world) : options_(options), world_(world) {}

  int rank() const { return world_.collectives == nullptr ? 0 : world_.collectives->fabric().rank(); }
  int size() const { return world_.collectives == nullptr ? 1 : world_.collectives->fabric().size(); }
  bool in_ranges() const { return size() > 1 && options_.in_ranges; }

  // Is the row that was read as this one, counted from 0, of this member's share? Of rows that all read, everyone has
  // one of size() in turn; what each reads by itself is its own.
  bool Has(std::uint64_t row) const {
    return has_all() || row % static_cast<std::uint64_t>(size()) == static_cast<std::uint64_t>(rank());
  }
  bool has_all() const { return !options_.whole || size() == 1; }  // that it reads
  // What this member holds of a vector.
  std::span<float> Mine(std::span<float> vector) const {
    return in_ranges() ? fabric::Chunk(vector, rank(), size()) : vector;
  }

  // A vector of which each member has computed what its rows make of it: Mine of it ends as the sum.
  Result<void> AddUp(std::span<float> vector);
  // A vector of which each member has Mine: ends as all of it.
  Result<void> Complete(std::span<float> vector);
  // Numbers that each has of its rows: their sums, and the largest. Who is as far waits here for the others.
  Result<std::vector<double>> Sum(const std::vector<double>& mine);
  Result<std::vector<double>> Largest(const std::vector<double>& mine);
  // Numbers that each has of what it holds of vectors: their sums, in place.
  Result<void> SumOverRanges(std::span<double> parts);

  // Where the time went; what others do (read, compute, apply) they add.
  StepTimes& times() { return times_; }

 private:
  Result<void> Timed(double StepTimes::*part, const char* name, const std::function<Result<void>()>& operation);

  const Options options_;
  const World world_;
  StepTimes times_;
};

}  // namespace freshet::strategy
