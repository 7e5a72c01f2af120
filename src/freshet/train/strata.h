#pragma once

#include <functional>
#include <vector>

#include "base/executor.h"
#include "data/batch.h"
#include "model/ratings.h"
#include "optimize/optimizer.h"
#include "strategy/walk.h"

namespace freshet::train {

// A row of a user and an item, as strata hold it.
inline model::Rating RatingOf(const data::Batch& batch, std::size_t row) {
  const std::uint32_t* const entry = batch.indices + batch.offsets[row];
  return {entry[0], entry[1], batch.labels[row]};
}

// Ratings in the cells of a grid (strategy/grid.h). The cells of a diagonal share no user and no item, so that threads
// train on them at once with plain vector code and no lock, and the result is the same for any number of threads, and of
// members that have some sides of the users each (strategy/walk.h).
//
// Threads: Train uses the executor's; everything else one at a time.
class Strata {
 public:
  explicit Strata(std::uint64_t seed) : grid_{seed} {}

  const strategy::Grid& grid() const { return grid_; }
  // Only ratings by users of these sides are kept from here on; others are counted.
  void Keep(const strategy::Walk::Sides& users) { users_ = users; }

  void Add(const model::Rating& rating);
  std::size_t size() const { return added_; }  // all that were added, kept or not
  std::size_t kept() const { return waiting_.size() + arranged_.size(); }
  double mean() const { return added_ == 0 ? 0 : sum_ / static_cast<double>(added_); }  // of all
  void Clear();

  // Calls `train` for each round of a pass, in order; an error ends the pass.
  using Rounds = std::function<Result<void>(const std::function<void(std::size_t round)>& train)>;
  // One pass over all ratings that are kept; returns the summed loss of predictions made before each update. Progress (at
  // the beginning and the end of this pass) chooses the rate. After an error parameters are in the midst of the pass.
  Result<double> Train(base::Executor& executor, const model::Ratings& model, optimize::Parameters& parameters,
                       optimize::Optimizer& optimizer, double progress, double progress_end, const Rounds& rounds);

 private:
  void Arrange();

  const strategy::Grid grid_;
  strategy::Walk::Sides users_;
  std::size_t added_ = 0;
  double sum_ = 0;                       // of their labels
  std::vector<model::Rating> waiting_;   // as they came
  std::vector<model::Rating> arranged_;  // by cell, in random order within a cell
  std::vector<std::size_t> starts_;      // of each cell in arranged_, and the end
};

}  // namespace freshet::train
