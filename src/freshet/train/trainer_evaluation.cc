// How good a model is on the rows that a run holds out, found out by all its workers together.

#include "train/trainer_state.h"

namespace freshet::train {

// kStopped, on all workers, when one of them was told to stop meanwhile.
Result<void> Trainer::EvaluateHeldOut(data::RowSource& source) {
  State& s = *state_;
  const base::Span span(options_.trace, "evaluate", base::Trace::kTraining, {.step = optimizer_.step()});
  s.report.held_out.reset();  // before another takes as much memory
  Evaluation held = SumsFor(model_, description_, Evaluation::Extent::kWithAuc);
  const auto goes_on = [this, &s] {
    TellIfLate((s.epoch + 1.0) / options_.epochs);
    return !s.watch.stopping();
  };
  data::RowSource& rows = s.cache.rows() != nullptr ? *s.cache.rows() : source;
  const std::size_t width = description_.view.any() ? s.augment->width() : description_.features;
  // Where some have no rows, the first tells all what it found; another may be the first by then.
  const bool told = !strategy_->all_read();
  const bool looks = !told || (strategy_->changes() ? strategy_->has_rows() : strategy_->rank() == 0);
  if (options_.leases != nullptr)
    TRY(EvaluateLeased(width, goes_on, held));
  else if (!looks)
    TRY(StopTogether({}));
  else
    TRY(StopTogether(Stratified() ? s.held_out.PredictRatings(rows, goes_on, held)
                                  : s.held_out.PredictRows(rows, width, goes_on, held)));
  if (told)
    CHECK(held.Load(TRY(ToldByTheFirst(held.Save()))));
  else if (!strategy_->reads_all() && options_.leases == nullptr)
    TRY(JoinEvaluation(held));
  if (held.rows() == 0) return Error{Code::kInvalid, "no rows are held out; choose another fraction or time"};
  s.report.held_out = std::move(held);
  return {};
}

}  // namespace freshet::train
