#include "train/evaluate.h"

#include "data/standardise.h"
#include "model/slices.h"

namespace freshet::train {
namespace {

constexpr std::size_t kNetworkRows = 32;  // what a network predicts at once

}  // namespace

Result<void> AddPredictions(const model::Model& model, const optimize::Parameters& parameters, const data::Batch& batch,
                            model::Workspace& workspace, std::vector<float>& scores, Evaluation& sums) {
  for (std::size_t begin = 0, end = 0; begin < batch.rows; begin = end) {
    end = model::SliceEnd(model, batch, begin, kNetworkRows);
    const data::Batch slice = batch.Slice(begin, end);
    scores.resize(slice.rows * model.scores());
    model.Predict(parameters, slice, workspace, scores);
    if (workspace.goes_on && !workspace.goes_on()) return Error{Code::kStopped, "stopped"};
    sums.Add(slice, scores, model.LossOf(parameters, slice, workspace, scores));
  }
  return {};
}

Result<Evaluation> Evaluate(const base::Env& env, const model::Model& model, const optimize::Parameters& parameters,
                            const data::Description& description, data::RowSource& source,
                            const std::atomic<bool>* stop) {
  Evaluation sums = SumsFor(model, description, Evaluation::Extent::kWithAuc);
  model::Workspace workspace;
  workspace.threads = env.executor.width();
  workspace.goes_on = [stop] { return stop == nullptr || !stop->load(std::memory_order_relaxed); };
  std::vector<float> scores;
  TRY(DriveFor(env, model, source, [&](data::Rows& rows) -> Result<void> {
    if (!workspace.goes_on()) return Error{Code::kStopped, "stopped"};
    data::Standardise(description, rows);
    data::ScaleLabels(description, rows);
    return AddPredictions(model, parameters, rows.batch(), workspace, scores, sums);
  }));
  return sums;
}

Result<void> DriveFor(const base::Env& env, const model::Model& model, data::RowSource& source,
                      const data::BlockWork& work, std::size_t prefetch, data::PrefetchStats* stats) {
  if (!model.traits().uses_team) return data::DriveInOrder(env.executor, source, work);
  return data::DrivePrefetched(env.executor, env.clock, source, prefetch, work, stats);
}

}  // namespace freshet::train
