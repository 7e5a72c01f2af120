// What happens between updates: the world is told how far training is, a run is stopped or saved.

#include "train/trainer_state.h"

namespace freshet::train {

// A block has been learned from, or waits in the window.
Result<void> Trainer::AfterBlock(const data::RowSource& source, const data::Position& position) {
  State& s = *state_;
  s.position = position;
  s.length_known = source.Fraction(position).has_value();
  const bool waiting = options_.shuffle && s.window.size() > 0;
  Show(waiting ? s.window_begin : ProgressAt(source, position));
  return SaveOrStop(env_.clock.Now());
}

Result<void> Trainer::AfterUpdate() {
  const Watch& watch = state_->watch;
  if (watch.TellingIsDue(watch.rows_wanted())) Show(Reached());
  return SaveOrStop(watch.rows_wanted());
}

// Of training, in the midst of what is learned from.
double Trainer::Reached() const { return options_.leases != nullptr ? state_->progress : state_->lot.progress(); }

// What is agreed on with a step: every worker says whether it wants to stop, rank 0 when it is time to save.
void Trainer::Ask(base::Clock::Duration now) {
  const Watch& watch = state_->watch;
  const bool saves = !options_.checkpoint_path.empty() && strategy_->rank() == 0;
  strategy_->Ask(watch.stopping(), saves && watch.SavingIsDue(now));
}

// Stops or saves when that is agreed on: workers do so all after the same step, who is alone when it wants to.
Result<void> Trainer::SaveOrStop(base::Clock::Duration now) {
  State& s = *state_;
  Ask(now);
  const bool stop = strategy_->stop_agreed();
  if (!options_.checkpoint_path.empty() && (stop || strategy_->save_agreed())) {
    s.seconds += s.watch.Lap();
    CountRead();
    if (auto saved = SaveCheckpoint(); !saved.ok()) return KeepWhatThereIs(std::move(saved).error());
    strategy_->Forget();
    s.watch.WantRows();
  }
  if (stop) return Stopped();
  if (strategy_->admission_agreed()) {
    if (auto admitted = strategy_->Admit(); !admitted.ok()) return KeepWhatThereIs(std::move(admitted).error());
    s.watch.WantRows();
  }
  return {};
}

Result<void> Trainer::SaveCheckpoint() {
  State& s = *state_;
  const base::Span span(options_.trace, "checkpoint", base::Trace::kTraining, {.step = optimizer_.step()});
  s.cached = s.cache.rows() != nullptr;
  ++s.saves;
  TRY(s.checkpoints->Save(s, s.early, *s.source));
  s.watch.Saved();
  return {};
}

// Nobody is left to go on with, nor to agree on anything: keeps what there is. Gives back what went wrong.
Error Trainer::KeepWhatThereIs(Error why) {
  State& s = *state_;
  if (options_.checkpoint_path.empty() || !strategy_->left_alone()) return why;
  ++s.saves;
  const auto kept = s.checkpoints->SaveAlone(s, s.early);
  if (kept.ok())
    why.text += Str("; checkpoint written to ", options_.checkpoint_path);
  else
    env_.log.Warn("checkpoint not written", "why", kept.error().text);
  return why;
}

// `fraction` is of the whole training.
void Trainer::Show(double fraction) {
  State& s = *state_;
  Progress progress;
  progress.epoch = s.epoch;
  progress.epochs = options_.epochs;
  progress.rows = s.rows;
  progress.step = optimizer_.step();
  progress.mean_loss = s.seen.loss();
  progress.error_rate = s.seen.error_rate();
  progress.rmse = s.seen.rmse();
  progress.total_loss = s.seen.total_loss();
  progress.weight = s.seen.weight();
  if (s.length_known) progress.fraction = fraction;
  s.watch.Tell(progress);
}

// Asked within a long update: goes on unless somebody wants us to stop, and tells the world meanwhile.
bool Trainer::GoesOn() {
  TellIfLate(state_->lot.progress());
  return !state_->watch.stopping();
}

void Trainer::TellIfLate(double fraction) {
  if (state_->watch.TellingIsDue()) Show(fraction);
}

Error Trainer::Stopped() const {
  const std::string& path = options_.checkpoint_path;
  return {Code::kStopped, Str("stopped after ", state_->rows, " rows",
                              path.empty() || !env_.files.Exists(path) ? "" : Str("; checkpoint written to ", path))};
}

// Rows are ready to be learned from: until now they were waited for.
void Trainer::CountRead() {
  if (strategy_->alone() && options_.trace == nullptr) return;
  const auto now = env_.clock.Now();
  const auto wanted = state_->watch.rows_wanted();
  strategy_->CountRead(now - wanted);
  if (options_.trace != nullptr)
    options_.trace->Add("read", base::Trace::kTraining, wanted, now, {.step = optimizer_.step()});
}

}  // namespace freshet::train
