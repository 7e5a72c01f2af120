#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/env.h"
#include "data/batch.h"
#include "data/source.h"
#include "model/ratings.h"
#include "train/evaluation.h"

namespace freshet::train {

// Which rows are kept back to test on.
struct HoldOut {
  double fraction = 0;          // chosen by a hash of the sample number
  std::int64_t after_time = 0;  // or: rows from this time on (seconds since 1970); 0: not by time
  std::uint64_t seed = 1;
  bool any() const { return fraction > 0 || after_time > 0; }
  bool Holds(const data::Batch& batch, std::size_t row) const;
};

// How good a model is, as it stands, on the rows that a run holds out. Rows are found in the source anew each time;
// ratings that whoever trains by strata comes across are kept.
//
// Threads:   one at a time; predicting uses the executor's.
// Ownership: borrows everything, which outlives it; the description is applied, not changed.
// Failure:   of the source; kStopped as soon as `goes_on`, which is asked every now and then, says no.
class HeldOut {
 public:
  using GoesOn = std::function<bool()>;
  HeldOut(const base::Env& env, const HoldOut& which, const model::Model& model, const optimize::Parameters& parameters,
          const data::Description& description)
      : env_(env), which_(which), model_(model), parameters_(parameters), description_(description) {}

  // Predicts what is held out of all the rows of a source, from its beginning, and adds how good that was to `sums`.
  // `width` is that of a row as a model is shown it.
  Result<void> PredictRows(data::RowSource& source, std::size_t width, const GoesOn& goes_on, Evaluation& sums) const;
  // The same of ratings. Reads the source only if those that were kept are not all.
  Result<void> PredictRatings(data::RowSource& source, const GoesOn& goes_on, Evaluation& sums);

  // Ratings are read, all of them or only the rest: forgets those that were kept before.
  void BeginRatings(bool all);
  // Keeps a row if it is held out; false if it is to be learned from.
  bool KeepRating(const data::Batch& batch, std::size_t row);

 private:
  Result<void> CollectRatings(data::RowSource& source, const GoesOn& goes_on);

  const base::Env env_;
  const HoldOut which_;
  const model::Model& model_;
  const optimize::Parameters& parameters_;
  const data::Description& description_;
  std::vector<model::Rating> ratings_;
  bool all_ratings_ = false;  // there are no others, when reading has come to its end
};

}  // namespace freshet::train
