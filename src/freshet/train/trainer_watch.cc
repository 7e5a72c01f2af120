// What happens between updates: the world is told how far training is, a run is stopped or saved, time is counted.

#include <utility>

#include "train/trainer_state.h"

namespace freshet::train {

// Tells the world how far we are, and stops or checkpoints when it is time.
Result<void> Trainer::AfterBlock(const data::RowSource& source, const data::Position& position) {
  State& s = *state_;
  s.position = position;
  Show(source.Fraction(position));
  bool due = base::Seconds(env_.clock.Now() - s.checkpointed) >= options_.checkpoint_seconds, stop = Stopping();
  if (options_.strategy != nullptr) {  // all must do the same; who reads rows of its own saves at the end of an epoch
    due = ReadsAll() && options_.strategy->save_agreed();
    stop = ReadsAll() && options_.strategy->stop_agreed();
  }
  if (!options_.checkpoint_path.empty() && (stop || due)) {
    Measure();
    CountRead();
    TRY(SaveCheckpoint(position));
    if (options_.strategy != nullptr) options_.strategy->Forget();
    s.wanted = env_.clock.Now();
  }
  if (stop) return Stopped();
  return {};
}

void Trainer::Show(std::optional<double> fraction) {
  State& s = *state_;
  if (!options_.progress) return;
  Progress progress;
  progress.epoch = s.epoch;
  progress.epochs = options_.epochs;
  progress.rows = s.report.rows;
  progress.mean_loss = s.seen.loss();
  progress.error_rate = s.seen.error_rate();
  progress.rmse = s.seen.rmse();
  progress.total_loss = s.seen.total_loss();
  progress.weight = s.seen.weight();
  if (fraction) progress.fraction = (s.epoch + *fraction) / options_.epochs;
  progress.seconds = base::Seconds(env_.clock.Now() - s.started);
  options_.progress(progress);
}

bool Trainer::Stopping() const { return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed); }

Error Trainer::Stopped() const {
  return {Code::kStopped,
          Str("stopped after ", state_->report.rows, " rows",
              options_.checkpoint_path.empty() ? "" : Str("; checkpoint written to ", options_.checkpoint_path))};
}

// Rows are ready to be learned from: until now they were waited for.
void Trainer::CountRead() {
  if (options_.strategy == nullptr && options_.trace == nullptr) return;
  const auto now = env_.clock.Now();
  if (options_.strategy != nullptr) options_.strategy->CountRead(now - state_->wanted);
  if (options_.trace != nullptr)
    options_.trace->Add("read", base::Trace::kTraining, state_->wanted, now, {.step = optimizer_.step()});
}

// Adds the time since the last measurement to what was spent training.
void Trainer::Measure() {
  const auto now = env_.clock.Now();
  state_->report.seconds += base::Seconds(now - std::exchange(state_->measured, now));
}

}  // namespace freshet::train
