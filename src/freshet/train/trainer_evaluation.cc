// How good a model is: on the rows a run holds out, and on any source.

#include "data/drive.h"
#include "train/trainer_state.h"

namespace freshet::train {
namespace {

// Predicts the rows of a batch and adds how good that was to `sums`.
void AddPredictions(const model::Model& model, const optimize::Parameters& parameters, const data::Batch& batch,
                    model::Workspace& workspace, std::vector<float>& scores, Evaluation& sums) {
  scores.resize(batch.rows * model.scores());
  model.Predict(parameters, batch, workspace, scores);
  sums.Add(batch, scores, model.LossOf(parameters, batch, workspace, scores));
}

}  // namespace

Result<void> Trainer::EvaluateHeldOut(data::RowSource& source) {
  State& s = *state_;
  const base::Span span(options_.trace, "evaluate", base::Trace::kTraining, {.step = optimizer_.step()});
  s.report.held_out.reset();  // before another takes as much memory
  Evaluation held(TaskOf(model_, description_), Evaluation::Extent::kWithAuc);
  model::Workspace workspace;
  workspace.threads = env_.executor.width();
  std::vector<float> scores;
  if (Stratified()) {
    if (!s.held_all) TRY(CollectHeldRatings(source));
    for (const model::Rating& rating : s.held_ratings) {
      const std::uint32_t offsets[] = {0, 2}, indices[] = {rating.user, rating.item};
      const float values[] = {1, 1};
      data::Batch batch;
      batch.rows = 1;
      batch.labels = &rating.label;
      batch.offsets = offsets;
      batch.indices = indices;
      batch.values = values;
      AddPredictions(model_, parameters_, batch, workspace, scores, held);
    }
  } else {
    Window kept(description_.dense, description_.view.any() ? s.augment->width() : description_.features);
    TRY(DriveAll(source, [&](data::Rows& block) -> Result<void> {
      Standardise(description_, block);
      const data::Batch batch = block.batch();
      kept.Clear();
      for (std::size_t r = 0; r < batch.rows; ++r)
        if (options_.hold_out.Holds(batch, r)) kept.Add(batch, r);
      AddPredictions(model_, parameters_, kept.batch(), workspace, scores, held);
      return {};
    }));
  }
  if (!ReadsAll()) TRY(JoinEvaluation(held));
  if (held.rows() == 0) return Error{Code::kInvalid, "no rows are held out; choose another fraction or time"};
  s.report.held_out_losses.push_back(held.loss());
  s.report.held_out = std::move(held);
  return {};
}

// Everything once more, from the cache if there is one.
Result<void> Trainer::DriveAll(data::RowSource& source, const data::BlockWork& work) {
  data::RowSource& rows = state_->cache ? *state_->cache : source;
  rows.Permute(0);
  TRY(rows.Seek({}));
  return DriveFor(env_, model_, rows, work);
}

Result<Evaluation> Evaluate(const base::Env& env, const model::Model& model, const optimize::Parameters& parameters,
                            const data::Description& description, data::RowSource& source,
                            const std::atomic<bool>* stop) {
  Evaluation sums(TaskOf(model, description), Evaluation::Extent::kWithAuc);
  model::Workspace workspace;
  workspace.threads = env.executor.width();
  std::vector<float> scores;
  TRY(DriveFor(env, model, source, [&](data::Rows& rows) -> Result<void> {
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) return Error{Code::kStopped, "stopped"};
    Standardise(description, rows);
    AddPredictions(model, parameters, rows.batch(), workspace, scores, sums);
    return {};
  }));
  return sums;
}

}  // namespace freshet::train
