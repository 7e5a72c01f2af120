#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/executor.h"
#include "data/batch.h"
#include "model/ratings.h"
#include "optimize/optimizer.h"

namespace freshet::train {

// A row of a user and an item, as strata hold it.
inline model::Rating RatingOf(const data::Batch& batch, std::size_t row) {
  const std::uint32_t* const entry = batch.indices + batch.offsets[row];
  return {entry[0], entry[1], batch.labels[row]};
}

// Ratings in a grid of kSides × kSides cells, by a hash of their user (row) and item (column). The cells of a diagonal
// share no user and no item, so that threads train on them at once with plain vector code and no lock, and the result
// is the same for any number of threads (Gemulla et al. 2011, "Large-Scale Matrix Factorization with Distributed SGD").
//
// Threads: Train uses the executor's; everything else one at a time.
class Strata {
 public:
  static constexpr std::size_t kSides = 16;
  explicit Strata(std::uint64_t seed) : seed_(seed) {}

  void Add(const model::Rating& rating) { waiting_.push_back(rating); }
  std::size_t size() const { return waiting_.size() + arranged_.size(); }
  double mean() const;
  void Clear();

  // One pass over all ratings; returns the summed loss of predictions made before each update. `epoch` and `progress`
  // (at the beginning and the end of this pass) choose the order of diagonals and the rate. `goes_on` is asked between
  // diagonals; when it says no, nothing is returned, and parameters are in the midst of the pass.
  std::optional<double> Train(base::Executor& executor, const model::Ratings& model, optimize::Parameters& parameters,
                              optimize::Optimizer& optimizer, int epoch, double progress, double progress_end,
                              const std::function<bool()>& goes_on = {});

 private:
  void Arrange();
  std::size_t Side(std::uint32_t id, std::uint64_t salt) const;

  const std::uint64_t seed_;
  std::vector<model::Rating> waiting_;   // as they came
  std::vector<model::Rating> arranged_;  // by cell, in random order within a cell
  std::vector<std::size_t> starts_;      // of each cell in arranged_, and the end
};

}  // namespace freshet::train
