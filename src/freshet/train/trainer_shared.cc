// Threads that update one model at once.

#include <cmath>

#include "base/mutex.h"
#include "data/drive.h"
#include "train/trainer_state.h"

namespace freshet::train {

// One model, many threads: each block is prepared in order, then trained on beside others by relaxed atomics. While the
// model is small, threads would only fight over its cache lines: blocks are then trained on in order, too.
Result<void> Trainer::EpochShared(data::RowSource& source) {
  State& s = *state_;
  struct Local {
    std::unique_ptr<optimize::Optimizer> optimizer;
    model::Workspace workspace;
    std::vector<float> scores;
  };
  std::vector<Local> locals(static_cast<std::size_t>(env_.executor.width()));
  for (Local& local : locals) local.optimizer = optimizer_.Sibling();
  base::Mutex mutex;  // guards s.seen, s.rows, s.report, the steps of optimizer_ and the call of AfterBlock
  const auto prepare = [&](data::Rows& rows) -> Result<void> {
    TRY(PrepareBlock(rows));
    if (parameters_.rows(0) >= kSharedWeights) return {};
    const base::Lock lock(mutex);
    const double progress = ProgressAt(source, rows.begin);
    TRY(TrainLot({.rows = rows.batch(), .due = rows.size(), .from = progress, .to = progress}));
    rows.ClearRows();  // nothing left for `work`
    return AfterBlock(source, rows.end);
  };
  const auto work = [&](int thread, data::Rows& rows) -> Result<void> {
    if (rows.size() == 0) return {};
    Local& local = locals[static_cast<std::size_t>(thread)];
    const data::Batch batch = rows.batch();
    local.scores.resize(batch.rows * model_.scores());
    {
      const base::Lock lock(mutex);
      local.optimizer->SetProgress(ProgressAt(source, rows.begin));
      local.optimizer->SetStep(optimizer_.step());  // the steps of all threads together
      optimizer_.SetStep(optimizer_.step() + batch.rows);
    }
    const base::Span span(options_.trace, "compute", base::Trace::kThreads + static_cast<std::uint32_t>(thread),
                          {.step = local.optimizer->step()});
    const auto begun = env_.clock.Now();
    const double loss = model_.Update(parameters_, batch, *local.optimizer, local.workspace, local.scores,
                                      optimize::Optimizer::Sharing::kShared);
    const base::Lock lock(mutex);
    s.report.update_seconds += base::Seconds(env_.clock.Now() - begun);
    s.report.shared = true;
    s.seen.Add(batch, local.scores, loss);
    s.rows += batch.rows;
    if (!std::isfinite(s.seen.total_loss())) return Diverged();
    return AfterBlock(source, rows.end);
  };
  return data::DriveShared(env_.executor, source, prepare, work);
}

}  // namespace freshet::train
