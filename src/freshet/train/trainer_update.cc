// How rows become updates: what the window holds, cut into steps.

#include <cmath>

#include "base/random.h"
#include "data/augment.h"
#include "train/trainer_state.h"

namespace freshet::train {

// Trains on what the window holds, as far as it is due: whole mini-batches, or everything when it is full or the end.
// The rows were read while training progressed to `progress`.
Result<void> Trainer::TrainWindow(double progress, bool end_of_epoch) {
  State& s = *state_;
  if (s.window.size() == 0) return {};
  if (options_.shuffle) {
    if (!end_of_epoch && s.window.bytes() < options_.shuffle_window_bytes) return {};
    const data::Batch mixed = s.window.Shuffled(base::Random(options_.seed + s.windows++, "shuffle"));
    // The window can be the whole epoch: the rate changes on the way, not only from window to window.
    constexpr std::size_t kPieces = 64;
    const std::size_t piece = (mixed.rows / kPieces / StepRows() + 1) * StepRows();
    for (std::size_t begin = 0; begin < mixed.rows; begin += piece) {
      const double share = static_cast<double>(begin) / static_cast<double>(mixed.rows);
      SetProgress(s.window_begin + share * (progress - s.window_begin));
      TRY(TrainBatch(mixed.Slice(begin, std::min(begin + piece, mixed.rows))));
    }
    s.window.Clear();
    return {};
  }
  const std::size_t due = end_of_epoch ? s.window.size() : s.window.size() / StepRows() * StepRows();
  SetProgress(progress);
  TRY(TrainBatch(s.window.batch().Slice(0, due)));
  s.window.DropFront(due);
  return {};
}

double Trainer::ProgressAt(const data::RowSource& source, const data::Position& position) const {
  return (state_->epoch + source.Fraction(position).value_or(0)) / options_.epochs;
}

Result<void> Trainer::TrainBatch(const data::Batch& batch) {
  State& s = *state_;
  const auto begun = env_.clock.Now();
  const bool alone = options_.batch == 1 || model_.config().kind == "kmeans";  // k-means has a rule of its own
  const bool shown = description_.view.any() || options_.mirror;
  const std::size_t most = options_.strategy == nullptr && alone && !shown ? batch.rows : StepRows();
  for (std::size_t begin = 0; begin < batch.rows; begin += most) {
    const data::Batch piece = batch.Slice(begin, std::min<std::size_t>(begin + most, batch.rows));
    data::Batch mine = options_.strategy == nullptr ? piece : options_.strategy->Share(piece);
    s.scores.resize(mine.rows * model_.scores());
    if (shown) {
      s.shown.resize(mine.rows * s.augment->width());
      s.augment->ForTraining(mine, static_cast<std::uint64_t>(s.epoch), s.shown.data());
      mine.dense = s.shown.data();
      mine.width = s.augment->width();
    }
    double loss = 0;
    CountRead();
    if (options_.strategy != nullptr) {
      const bool due = base::Seconds(env_.clock.Now() - s.checkpointed) >= options_.checkpoint_seconds;
      options_.strategy->Ask(Stopping(), due && options_.strategy->rank() == 0);
      loss = TRY(options_.strategy->Step(piece, mine, s.scores));
    } else {
      const base::Span span(options_.trace, "step", base::Trace::kTraining, {.step = optimizer_.step()});
      loss = alone ? TrainRows(mine, s.scores) : TrainStep(mine, s.scores);
    }
    s.seen.Add(mine, s.scores, loss);
    s.wanted = env_.clock.Now();
    s.report.rows += mine.rows;
    if (!std::isfinite(s.seen.total_loss())) return Diverged();
    if (!ReadsAll() && options_.strategy->stop_agreed()) return Stopped();
  }
  s.report.update_seconds += base::Seconds(env_.clock.Now() - begun);
  return {};
}

// One update from each row.
double Trainer::TrainRows(const data::Batch& batch, std::span<float> scores) {
  const base::Span span(options_.trace, "compute", base::Trace::kTraining, {.step = optimizer_.step()});
  return model_.Update(parameters_, batch, optimizer_, state_->workspace, scores, optimize::Optimizer::Sharing::kAlone);
}

// One update from the gradient of several rows.
double Trainer::TrainStep(const data::Batch& batch, std::span<float> scores) {
  State& s = *state_;
  std::optional<base::Span> span(std::in_place, options_.trace, "compute", base::Trace::kTraining,
                                 base::Trace::Details{.step = optimizer_.step()});
  model_.Observe(parameters_, batch, optimizer_);
  s.gradient.Clear();
  s.workspace.step = optimizer_.step();
  const double loss = model_.LossAndGradient(parameters_, batch, s.workspace, s.gradient, scores);
  double weight = 0;
  for (std::size_t r = 0; r < batch.rows; ++r) weight += batch.weight(r);
  span.emplace(options_.trace, "apply", base::Trace::kTraining, base::Trace::Details{.step = optimizer_.step()});
  model_.Apply(parameters_, s.gradient, weight, optimizer_, s.workspace);
  return loss;
}

}  // namespace freshet::train
