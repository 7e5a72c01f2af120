// How good a model is on the rows that a run holds out.

#include "data/standardise.h"
#include "train/trainer_state.h"

namespace freshet::train {
// kStopped, on all workers, when one of them was told to stop meanwhile.
Result<void> Trainer::EvaluateHeldOut(data::RowSource& source) {
  State& s = *state_;
  const base::Span span(options_.trace, "evaluate", base::Trace::kTraining, {.step = optimizer_.step()});
  s.report.held_out.reset();  // before another takes as much memory
  Evaluation held = SumsFor(model_, description_, Evaluation::Extent::kWithAuc);
  const auto evaluated = Stratified() ? PredictHeldRatings(source, held) : PredictHeldRows(source, held);
  TRY(StopTogether(evaluated));
  if (!strategy_->reads_all()) TRY(JoinEvaluation(held));
  if (held.rows() == 0) return Error{Code::kInvalid, "no rows are held out; choose another fraction or time"};
  s.report.held_out = std::move(held);
  return {};
}

Result<void> Trainer::PredictHeldRows(data::RowSource& source, Evaluation& held) {
  State& s = *state_;
  model::Workspace workspace;
  workspace.threads = env_.executor.width();
  workspace.goes_on = [this] { return GoesOnEvaluating(); };
  std::vector<float> scores;
  Window kept(description_.dense, description_.view.any() ? s.augment->width() : description_.features);
  return DriveAll(source, [&](data::Rows& block) -> Result<void> {
    if (!GoesOnEvaluating()) return Stopped();
    data::Standardise(description_, block);
    data::ScaleLabels(description_, block);
    const data::Batch batch = block.batch();
    kept.Clear();
    for (std::size_t r = 0; r < batch.rows; ++r)
      if (options_.hold_out.Holds(batch, r)) kept.Add(batch, r);
    return AddPredictions(model_, parameters_, kept.batch(), workspace, scores, held);
  });
}

Result<void> Trainer::PredictHeldRatings(data::RowSource& source, Evaluation& held) {
  State& s = *state_;
  if (!s.held_all) TRY(CollectHeldRatings(source));
  model::Workspace workspace;
  std::vector<float> scores;
  constexpr std::size_t kAtOnce = 4096;  // between two looks at the clock
  for (std::size_t i = 0; i < s.held_ratings.size(); ++i) {
    if (i % kAtOnce == 0 && !GoesOnEvaluating()) return Stopped();
    const model::Rating& rating = s.held_ratings[i];
    const std::uint32_t offsets[] = {0, 2}, indices[] = {rating.user, rating.item};
    const float values[] = {1, 1};
    data::Batch batch;
    batch.rows = 1;
    batch.labels = &rating.label;
    batch.offsets = offsets;
    batch.indices = indices;
    batch.values = values;
    TRY(AddPredictions(model_, parameters_, batch, workspace, scores, held));
  }
  return {};
}

bool Trainer::GoesOnEvaluating() {
  TellIfLate((state_->epoch + 1.0) / options_.epochs);
  return !state_->watch.stopping();
}

// Everything once more, from the cache if there is one.
Result<void> Trainer::DriveAll(data::RowSource& source, const data::BlockWork& work) {
  data::RowSource& rows = state_->cache.rows() != nullptr ? *state_->cache.rows() : source;
  rows.Permute(0);
  TRY(rows.Seek({}));
  return DriveFor(env_, model_, rows, work);
}

}  // namespace freshet::train
