// How rows become updates. Rows that are due are a lot: the window's, or a block's. A lot is trained on in pieces, and
// a run can be saved or stopped after each.

#include <cmath>

#include "base/random.h"
#include "data/images/augment.h"
#include "train/trainer_state.h"

namespace freshet::train {

// Trains on what the window holds, as far as it is due: whole mini-batches, or everything when it is full or the end.
// The rows were read while training progressed to `progress`.
Result<void> Trainer::TrainWindow(double progress, bool end_of_epoch) {
  State& s = *state_;
  if (s.window.size() == 0) return {};
  if (!options_.shuffle) {
    const std::size_t due = end_of_epoch ? s.window.size() : s.window.size() / strategy_->piece() * strategy_->piece();
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
  const std::size_t piece =
      lot.from == lot.to ? lot.due : (lot.due / kPieces / strategy_->piece() + 1) * strategy_->piece();
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

// Rows as the model is shown them in this epoch.
data::Batch Trainer::Show(data::Batch rows, std::vector<float>& memory) const {
  const State& s = *state_;
  memory.resize(rows.rows * s.augment->width());
  s.augment->ForTraining(rows, static_cast<std::uint64_t>(s.epoch), memory.data());
  rows.dense = memory.data();
  rows.width = s.augment->width();
  return rows;
}

Result<void> Trainer::TrainBatch(const data::Batch& batch) {
  State& s = *state_;
  const auto begun = env_.clock.Now();
  for (std::size_t begin = 0, end = 0; begin < batch.rows; begin = end) {
    end = strategy_->EndOfPiece(batch, begin);
    TRY(TrainPiece(batch.Slice(begin, end)));
  }
  s.report.update_seconds += base::Seconds(env_.clock.Now() - begun);
  return {};
}

Result<bool> Trainer::TrainPiece(const data::Batch& piece) {
  State& s = *state_;
  data::Batch mine;
  std::optional<double> loss;
  for (bool done = false; !done;) {
    mine = strategy_->Share(piece);
    s.scores.resize(strategy_->has_scores() ? mine.rows * model_.scores() : 0);
    if (Shown()) mine = Show(mine, s.shown);
    CountRead();
    Ask(s.watch.rows_wanted());
    const auto made = strategy_->Step(piece, mine, s.scores);
    const auto recovered = made.ok() ? made : strategy_->Recover(made.error(), mine, s.scores);
    if (!recovered.ok()) return KeepWhatThereIs(recovered.error());
    loss = recovered.value();
    s.watch.WantRows();
    done = made.ok() || loss.has_value() || strategy_->stop_agreed();
    if (!done && options_.leases != nullptr) return false;
  }
  if (loss) {
    if (strategy_->has_scores()) s.seen.Add(mine, s.scores, *loss);
    const std::size_t learned = options_.leases != nullptr ? strategy_->rows_of_step() : piece.rows;
    s.rows += strategy_->changes() ? learned - strategy_->given_up() : mine.rows;
    if (options_.leases != nullptr)
      ++s.position.block;
    else
      s.lot.done += piece.rows;
    if (!std::isfinite(s.seen.total_loss())) return Diverged();
  }
  TRY(AfterUpdate());
  CHECK(loss.has_value());  // an update is given up only for a stop
  return true;
}

}  // namespace freshet::train
