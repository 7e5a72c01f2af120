#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "base/clock.h"

namespace freshet::train {

// What to tell a person while training goes on. Losses are of predictions made before learning from the row.
struct Progress {
  int epoch = 0, epochs = 1;
  std::uint64_t rows = 0;             // in this run, over all epochs
  std::uint64_t step = 0;             // updates of the model so far
  double mean_loss = 0;               // of this epoch so far
  double total_loss = 0, weight = 0;  // the sums behind it, for means over parts of the epoch
  std::optional<double> error_rate, rmse;
  std::optional<double> fraction;  // of the whole training, when its length is known
  double seconds = 0;
};

// The hands of a run's clock: when something was last told and saved, how long rows are waited for, what time was spent
// training; and whether somebody wants the run to stop.
//
// Threads:   one at a time, but for stopping(), which any may ask.
// Ownership: borrows the clock and *stop (null: nobody will stop it), which outlive it.
class Watch {
 public:
  using Moment = base::Clock::Duration;
  using Listener = std::function<void(const Progress&)>;
  static constexpr double kTellSeconds = 0.5;  // at most so long is nothing told

  Watch(const base::Clock& clock, const std::atomic<bool>* stop, Listener listener, double save_seconds)
      : clock_(clock), stop_(stop), listener_(std::move(listener)), save_seconds_(save_seconds) {}

  // The run begins. Before, nothing else is asked but stopping().
  void Start() { started_ = saved_ = told_ = clock_.Now(); }
  bool stopping() const { return stop_ != nullptr && stop_->load(std::memory_order_relaxed); }

  // Tells the listener, if there is one; the seconds since the start are filled in.
  void Tell(Progress progress);
  bool TellingIsDue(Moment now) const { return base::Seconds(now - told_) >= kTellSeconds; }
  bool TellingIsDue() const { return TellingIsDue(clock_.Now()); }

  void Saved() { saved_ = clock_.Now(); }
  bool SavingIsDue(Moment now) const { return base::Seconds(now - saved_) >= save_seconds_; }

  // The next rows are waited for from now on.
  void WantRows() { wanted_ = clock_.Now(); }
  Moment rows_wanted() const { return wanted_; }

  // Time that counts as spent training begins; Lap gives the seconds of it since it began, or since the last Lap.
  void BeginLap() { lap_ = clock_.Now(); }
  double Lap();

 private:
  const base::Clock& clock_;
  const std::atomic<bool>* const stop_;
  const Listener listener_;
  const double save_seconds_;
  Moment started_{}, saved_{}, told_{}, wanted_{}, lap_{};
};

}  // namespace freshet::train
