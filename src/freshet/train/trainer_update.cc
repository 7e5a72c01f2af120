// How rows become updates. Rows that are due are a lot: the window's, or a block's. A lot is trained on in pieces, and
// a run can be saved or stopped after each.

#include <cmath>

#include "base/random.h"
#include "data/augment.h"
#include "model/slices.h"
#include "train/trainer_state.h"

namespace freshet::train {

// Trains on what the window holds, as far as it is due: whole mini-batches, or everything when it is full or the end.
// The rows were read while training progressed to `progress`.
Result<void> Trainer::TrainWindow(double progress, bool end_of_epoch) {
  State& s = *state_;
  if (s.window.size() == 0) return {};
  if (!options_.shuffle) {
    const std::size_t due = end_of_epoch ? s.window.size() : s.window.size() / StepRows() * StepRows();
    TRY(TrainLot({.rows = s.window.batch(), .due = due, .from = progress, .to = progress}));
    s.window.DropFront(due);
    return {};
  }
  if (!end_of_epoch && s.window.bytes() < options_.shuffle_window_bytes) return {};
  const data::Batch mixed = s.window.Shuffled(base::Random(options_.seed + s.windows++, "shuffle"));
  TRY(TrainLot({.rows = mixed, .due = mixed.rows, .from = s.window_begin, .to = progress}));
  s.window.Clear();
  return {};
}

// Goes on with the lot in whose midst an earlier run was stopped; the window has what is left of it.
Result<void> Trainer::TrainRestOfLot() {
  State& s = *state_;
  if (s.lot.due == 0) return {};
  Lot rest = s.lot;
  rest.rows = s.window.batch();
  rest.before = rest.done;
  TRY(TrainLot(rest));
  s.window.DropFront(rest.due - rest.before);
  return {};
}

Result<void> Trainer::TrainLot(const Lot& rows) {
  State& s = *state_;
  Lot& lot = s.lot = rows;
  // A lot can be the whole epoch: the rate changes on the way, not only from lot to lot.
  constexpr std::size_t kPieces = 64;
  const std::size_t piece = lot.from == lot.to ? lot.due : (lot.due / kPieces / StepRows() + 1) * StepRows();
  while (lot.done < lot.due) {
    const std::size_t begin = lot.done / piece * piece, end = std::min(begin + piece, lot.due);
    const double share = static_cast<double>(begin) / static_cast<double>(lot.due);
    SetProgress(lot.from + share * (lot.to - lot.from));
    TRY(TrainBatch(lot.rows.Slice(lot.done - lot.before, end - lot.before)));
  }
  lot = {};
  return {};
}

double Trainer::ProgressAt(const data::RowSource& source, const data::Position& position) const {
  return (state_->epoch + source.Fraction(position).value_or(0)) / options_.epochs;
}

Result<void> Trainer::TrainBatch(const data::Batch& batch) {
  State& s = *state_;
  const auto begun = env_.clock.Now();
  const bool single = options_.batch == 1;
  const bool shown = description_.view.any() || options_.mirror;
  const bool by_rows = options_.strategy == nullptr && single && !shown;
  for (std::size_t begin = 0, end = 0; begin < batch.rows; begin = end) {
    end = by_rows ? model::SliceEnd(model_, batch, begin, 1) : std::min(begin + StepRows(), batch.rows);
    const data::Batch piece = batch.Slice(begin, end);
    data::Batch mine = options_.strategy == nullptr ? piece : options_.strategy->Share(piece);
    s.scores.resize(mine.rows * model_.scores());
    if (shown) {
      s.shown.resize(mine.rows * s.augment->width());
      s.augment->ForTraining(mine, static_cast<std::uint64_t>(s.epoch), s.shown.data());
      mine.dense = s.shown.data();
      mine.width = s.augment->width();
    }
    const std::optional<double> loss = TRY(Update(piece, mine, single));
    s.wanted = env_.clock.Now();
    if (loss) {
      s.seen.Add(mine, s.scores, *loss);
      s.report.rows += mine.rows;
      s.lot.done += piece.rows;
      if (!std::isfinite(s.seen.total_loss())) return Diverged();
    }
    TRY(AfterUpdate());
    CHECK(loss.has_value());  // an update is given up only for a stop
  }
  s.report.update_seconds += base::Seconds(env_.clock.Now() - begun);
  return {};
}

// One update, or several, from a piece of rows, of which `mine` are this worker's. Returns the loss of those; nothing
// when a stop came before the update was made, and everything is as it was.
Result<std::optional<double>> Trainer::Update(const data::Batch& piece, const data::Batch& mine, bool alone) {
  State& s = *state_;
  CountRead();
  if (options_.strategy != nullptr) {
    Ask();
    const double loss = TRY(options_.strategy->Step(piece, mine, s.scores));
    if (options_.strategy->stop_agreed()) return std::optional<double>();
    return std::optional<double>(loss);
  }
  const base::Span span(options_.trace, "step", base::Trace::kTraining, {.step = optimizer_.step()});
  if (alone) return std::optional<double>(TrainRows(mine, s.scores));
  return TrainStep(mine, s.scores);
}

// One update from each row.
double Trainer::TrainRows(const data::Batch& batch, std::span<float> scores) {
  const base::Span span(options_.trace, "compute", base::Trace::kTraining, {.step = optimizer_.step()});
  return model_.Update(parameters_, batch, optimizer_, state_->workspace, scores, optimize::Optimizer::Sharing::kAlone);
}

// One update from the gradient of several rows; nothing when it was given up for a stop.
Result<std::optional<double>> Trainer::TrainStep(const data::Batch& batch, std::span<float> scores) {
  State& s = *state_;
  std::optional<base::Span> span(std::in_place, options_.trace, "compute", base::Trace::kTraining,
                                 base::Trace::Details{.step = optimizer_.step()});
  model_.Observe(parameters_, batch, optimizer_);
  s.gradient.Clear();
  s.workspace.step = optimizer_.step();
  s.given_up = false;
  double loss = 0, weight = 0;
  const std::size_t parts = std::min<std::size_t>(options_.accumulate, batch.rows), width = model_.scores();
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t first = batch.rows * part / parts, last = batch.rows * (part + 1) / parts;
    TRY(model_.Reserve(last - first, s.workspace));
    loss += model_.LossAndGradient(parameters_, batch.Slice(first, last), s.workspace, s.gradient,
                                   scores.subspan(first * width, (last - first) * width));
    if (s.given_up) return std::optional<double>();
  }
  for (std::size_t r = 0; r < batch.rows; ++r) weight += batch.weight(r);
  span.emplace(options_.trace, "apply", base::Trace::kTraining, base::Trace::Details{.step = optimizer_.step()});
  model_.Apply(parameters_, s.gradient, weight, optimizer_, s.workspace);
  return std::optional<double>(loss);
}

}  // namespace freshet::train
