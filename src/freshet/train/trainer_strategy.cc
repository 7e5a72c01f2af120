// What a trainer does as one of several workers, or as the only one.

#include <numeric>

#include "train/trainer_state.h"

namespace freshet::train {

// Steps are made by the strategy that was given, or alone.
Result<void> Trainer::ChooseStrategy() {
  State& s = *state_;
  strategy_ = options_.strategy;
  if (strategy_ != nullptr) return {};
  strategy::Alone::Options how{.batch = options_.batch,
                               .accumulate = options_.accumulate,
                               .threads = env_.executor.width(),
                               .by_rows = !Shown(),
                               .goes_on = [this] { return GoesOn(); }};
  s.alone = TRY(strategy::Alone::Make(how, {model_, parameters_, optimizer_, s.memory, env_.clock, options_.trace}));
  strategy_ = s.alone.get();
  return {};
}

void Trainer::SetProgress(double progress) {
  state_->progress = progress;
  strategy_->SetProgress(progress);
}

// The end of an epoch: all have the same parameters, and know what all have seen.
Result<void> Trainer::Join() {
  State& s = *state_;
  for (bool dry = strategy_->in_step() || options_.leases != nullptr; !dry;) {
    Ask(s.watch.rows_wanted());
    dry = TRY(strategy_->StepDry());
    s.watch.WantRows();
    TRY(AfterUpdate());
  }
  const bool looked_at = options_.hold_out.any() || !options_.checkpoint_path.empty() || s.epoch + 1 == options_.epochs;
  if (looked_at || !strategy_->stays_apart()) TRY(strategy_->Settle());
  TRY(JoinEvaluation(s.seen));
  const auto mine = static_cast<double>(s.rows - s.joined_rows);
  if (strategy_->changes()) {  // then each has counted those of all
    s.rows_each = {mine};
    if (!strategy_->all_read()) s.rows_each = TRY(ToldByTheFirst(std::move(s.rows_each)));
  } else {
    s.rows_each.assign(static_cast<std::size_t>(strategy_->size()), 0);
    s.rows_each[static_cast<std::size_t>(strategy_->rank())] = mine;
    s.rows_each = TRY(strategy_->Sum(s.rows_each));
  }
  s.joined_rows += static_cast<std::uint64_t>(std::accumulate(s.rows_each.begin(), s.rows_each.end(), 0.0));
  s.rows = s.joined_rows;
  return {};
}

// Of what each worker does by itself and can be stopped in: kStopped for all when one of them was.
Result<void> Trainer::StopTogether(const Result<void>& mine) {
  const bool stopped = !mine.ok() && mine.error().code == Code::kStopped;
  if (!mine.ok() && !stopped) return mine;
  if (TRY(strategy_->Sum({stopped ? 1.0 : 0.0}))[0] > 0) return Stopped();
  return {};
}

// Parts of the same number of bytes have more rows where rows are short. The first epoch has counted where they stand;
// from now on parts have about the same number of rows, and what was kept of the old ones is forgotten. Held-out rows
// are told by their number within a part, so where some are, parts stay.
Result<void> Trainer::Rebalance(data::RowSource& source) {
  State& s = *state_;
  if (strategy_->reads_all() || options_.own_input || options_.leases != nullptr || s.epoch > 0 ||
      s.epoch + 1 >= options_.epochs)
    return {};
  const double imbalance = data::Imbalance(s.rows_each);
  if (imbalance <= kUneven) return {};
  const auto bytes = source.bytes();
  if (!bytes || options_.hold_out.fraction > 0) {
    if (strategy_->rank() == 0)
      env_.log.Warn("unequal shares of rows", "above_mean", imbalance, "why",
                    bytes ? "rows are held out by their place" : "this input cannot be cut at any byte");
    return {};
  }
  s.cuts = data::CutsByRows(*bytes, TRY(strategy_->Sum(source.RowsWhere())), s.rows_each.size());
  TRY(source.CutAt(s.cuts));
  s.report.imbalance = imbalance;
  return s.cache.Drop();
}

// Until somebody has told it: where members come and go, another one may be the first meanwhile.
Result<std::vector<double>> Trainer::ToldByTheFirst(std::vector<double> mine) {
  mine.push_back(1);
  while (true) {
    std::vector<double> told =
        TRY(strategy_->Sum(strategy_->rank() == 0 ? mine : std::vector<double>(mine.size(), 0.0)));
    const double tellers = told.back();
    told.pop_back();
    if (tellers > 0) return told;
  }
}

Result<void> Trainer::JoinEvaluation(Evaluation& evaluation) {
  CHECK(evaluation.Load(TRY(strategy_->Sum(evaluation.Save()))));
  return {};
}

}  // namespace freshet::train
