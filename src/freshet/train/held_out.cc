#include "train/held_out.h"

#include "base/random.h"
#include "data/standardise.h"
#include "train/evaluate.h"
#include "train/strata.h"
#include "train/window.h"

namespace freshet::train {
namespace {

Error Stopped() { return {Code::kStopped, "stopped"}; }

Result<void> FromTheBeginning(data::RowSource& source) {
  source.Permute(0);
  return source.Seek({});
}

}  // namespace

bool HoldOut::Holds(const data::Batch& batch, std::size_t row) const {
  if (after_time > 0) return batch.times != nullptr && batch.times[row] >= after_time;
  if (fraction <= 0) return false;
  const std::uint64_t sample = batch.samples == nullptr ? row : batch.samples[row];
  return static_cast<double>(base::Hash64(sample ^ base::Hash64(seed)) >> 11) * 0x1p-53 < fraction;
}

Result<void> HeldOut::PredictRows(data::RowSource& source, std::size_t width, const GoesOn& goes_on,
                                  Evaluation& sums) const {
  model::Workspace workspace;
  workspace.threads = env_.executor.width();
  workspace.goes_on = goes_on;
  std::vector<float> scores;
  Window kept(description_.dense, width);
  TRY(FromTheBeginning(source));
  return DriveFor(env_, model_, source, [&](data::Rows& block) -> Result<void> {
    if (!goes_on()) return Stopped();
    data::Standardise(description_, block);
    data::ScaleLabels(description_, block);
    const data::Batch batch = block.batch();
    kept.Clear();
    for (std::size_t r = 0; r < batch.rows; ++r)
      if (which_.Holds(batch, r)) kept.Add(batch, r);
    return AddPredictions(model_, parameters_, kept.batch(), workspace, scores, sums);
  });
}

Result<void> HeldOut::PredictRatings(data::RowSource& source, const GoesOn& goes_on, Evaluation& sums) {
  if (!all_ratings_) TRY(CollectRatings(source, goes_on));
  model::Workspace workspace;
  std::vector<float> scores;
  constexpr std::size_t kAtOnce = 4096;  // between two looks at the clock
  for (std::size_t i = 0; i < ratings_.size(); ++i) {
    if (i % kAtOnce == 0 && !goes_on()) return Stopped();
    const model::Rating& rating = ratings_[i];
    const std::uint32_t offsets[] = {0, 2}, indices[] = {rating.user, rating.item};
    const float values[] = {1, 1};
    data::Batch batch;
    batch.rows = 1;
    batch.labels = &rating.label;
    batch.offsets = offsets;
    batch.indices = indices;
    batch.values = values;
    TRY(AddPredictions(model_, parameters_, batch, workspace, scores, sums));
  }
  return {};
}

void HeldOut::BeginRatings(bool all) {
  ratings_.clear();
  all_ratings_ = all;
}

bool HeldOut::KeepRating(const data::Batch& batch, std::size_t row) {
  if (!which_.Holds(batch, row)) return false;
  ratings_.push_back(RatingOf(batch, row));
  return true;
}

// Where a resumed run has not seen them all.
Result<void> HeldOut::CollectRatings(data::RowSource& source, const GoesOn& goes_on) {
  BeginRatings(false);
  TRY(FromTheBeginning(source));
  TRY(DriveFor(env_, model_, source, [&](data::Rows& rows) -> Result<void> {
    if (!goes_on()) return Stopped();
    const data::Batch batch = rows.batch();
    for (std::size_t r = 0; r < batch.rows; ++r) KeepRating(batch, r);
    return {};
  }));
  all_ratings_ = true;
  return {};
}

}  // namespace freshet::train
