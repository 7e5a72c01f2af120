// Training on ratings: gathered as far as memory allows, arranged in strata, and trained on by all threads. Members of a
// ring each keep those of their users, of as many as one who is alone would gather, so that their passes are the same.

#include <cmath>
#include <functional>

#include "data/drive.h"
#include "train/trainer_state.h"

namespace freshet::train {

Result<void> Trainer::EpochStratified(data::RowSource& source) {
  State& s = *state_;
  const model::Ratings& model = *model_.ratings();
  const auto train = [&](double from, double to) -> Result<void> {
    if (s.strata.size() == 0) return {};
    const std::uint64_t rows = s.strata.kept();
    if (!model.KnowsMean(parameters_)) model.StartMean(parameters_, s.strata.mean(), s.strata.size());
    CountRead();
    const auto begun = env_.clock.Now();
    const double begin = (s.epoch + from) / options_.epochs, end = (s.epoch + to) / options_.epochs;
    strategy::Walk* const walk = strategy_->walk();
    const auto rounds = [&](const std::function<void(std::size_t)>& train_round) -> Result<void> {
      const auto one = [&](std::size_t round) {
        TellIfLate(begin);
        train_round(round);
      };
      if (walk != nullptr) return walk->Pass(s.strata.grid(), s.strata.kept(), one);
      for (std::size_t round = 0; round < strategy::Grid::kSides; ++round) {
        if (s.watch.stopping()) return Stopped();  // the pass is made again: the last checkpoint is from before it
        one(round);
      }
      return {};
    };
    Ask(begun);
    const double loss = TRY(s.strata.Train(env_.executor, model, parameters_, optimizer_, begin, end, rounds));
    s.watch.WantRows();
    const auto ended = s.watch.rows_wanted();
    s.report.update_seconds += base::Seconds(ended - begun);
    if (options_.trace != nullptr && walk == nullptr)
      options_.trace->Add("compute", base::Trace::kTraining, begun, ended, {.step = optimizer_.step()});
    const bool squared = model_.loss().name() == "squared";
    s.seen.AddLoss(rows, loss, squared ? 2 * loss : 0);
    s.rows += rows;
    if (!std::isfinite(s.seen.total_loss())) return Diverged();
    return {};
  };
  const auto finish = [&]() -> Result<void> {
    s.position = {};
    s.length_known = true;
    Show((s.epoch + 1.0) / options_.epochs);
    return {};
  };
  if (s.strata_whole) {
    TRY(train(0, 1));
    return finish();
  }
  const bool from_the_beginning = s.position.block == 0;
  double from = source.Fraction(s.position).value_or(0);
  bool flushed = false;
  if (strategy_->walk() != nullptr) s.strata.Keep(strategy_->walk()->users());
  s.held_out.BeginRatings(from_the_beginning);
  base::InlineExecutor reading;  // since `train` wants all threads, which a task of theirs could not ask for
  TRY(data::DriveInOrder(reading, source, [&](data::Rows& rows) -> Result<void> {
    TRY(PrepareBlock(rows));
    const data::Batch batch = rows.batch();
    for (std::size_t r = 0; r < batch.rows; ++r)
      if (!s.held_out.KeepRating(batch, r)) s.strata.Add(RatingOf(batch, r));
    if (s.strata.size() < options_.most_ratings) {
      TellIfLate(ProgressAt(source, s.position));
      return SaveOrStop(env_.clock.Now());  // of what was trained on; the ratings gathered since are read again
    }
    const double to = source.Fraction(rows.end).value_or(0);
    flushed = true;
    TRY(train(from, to));
    from = to;
    s.strata.Clear();
    return AfterBlock(source, rows.end);
  }));
  TRY(train(from, 1));
  if (!flushed && from_the_beginning)
    s.strata_whole = true;
  else
    s.strata.Clear();
  return finish();
}

// All ratings, where a resumed run has not read them all in its first epoch.
Result<void> Trainer::CollectRated(data::RowSource& source) {
  source.Permute(0);
  TRY(source.Seek({}));
  return data::DriveInOrder(env_.executor, source, [&](data::Rows& rows) -> Result<void> {
    options_.rated->Add(rows.batch());
    return {};
  });
}

}  // namespace freshet::train
