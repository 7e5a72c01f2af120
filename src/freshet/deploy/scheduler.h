#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace freshet::deploy {

struct SchedulerOptions {
  std::uint64_t max_buffer_size = 500;  // rows; an iteration runs when the buffer holds so many. 0: not by size
  base::Clock::Duration period{0};      // from start to start of iterations. 0: not by time
  bool when_idle = false;               // also whenever the predictions leave room
  double p99_target_seconds = 0.010;    // of predictions; idle iterations keep away from it
  double stagnation = 0.001;            // a relative fall of loss or error up to this is no improvement
  int patience = 5;                     // passes without improvement and without new data, until it is converged

  Result<void> Validate() const;
};

// How things stand, as the caller knows them.
struct Situation {
  base::Clock::Duration now{0};  // of a monotonic clock
  std::uint64_t buffered = 0;    // rows that wait in the buffer
  std::uint64_t learned = 0;     // observations ever learned
  bool drift = false;            // found since the last call
  double p99_seconds = 0;        // of recent predictions; not looked at while there are none
  double predictions_per_second = 0;
  std::uint64_t history = 0;    // rows there are
  std::uint64_t drawable = 0;   // of those, rows that iterations draw from: so many are a pass
  std::uint64_t unvisited = 0;  // rows of data sets that no iteration has visited
  double error = 0;             // of the model that serves: held out, or progressive over a window
};

enum class Reason { kNone, kBufferFull, kPeriod, kIdle, kDrift, kDataset, kAsked };
std::string_view Text(Reason reason);  // for people: "the buffer is full"

// Decides when a training iteration runs. The caller asks often, at least when something in the situation has changed,
// runs an iteration when the answer is not kNone, and says when it starts and ends. The rules, in this order:
//
//   asked   somebody asked for an iteration
//   drift   a drift was found, also when that was while the last iteration ran
//   set     a data set has joined that no iteration has visited
//   size    the buffer holds max_buffer_size rows or more
//   period  the last iteration (or else the first call) began `period` ago; not when converged
//   idle    the last iteration ended (or the first call was) a gap ago, or nobody asks for predictions; not when
//           converged
//
// While an iteration runs, or while there are no rows at all, the answer is kNone; asking and drift are remembered.
//
// The gap spaces idle iterations out as predictions get slow. It starts at 0: back to back. After every iteration, the
// next call looks at the p99 of predictions. Above the target the gap becomes twice what it was, and at least as long
// as the iteration took, at most a minute. Below half the target, or while nobody asks for predictions, it becomes half
// of what it was, and 0 below a millisecond. In between it stays.
//
// It is converged after `patience` passes in a row that brought no improvement while no new data came: none whose
// training loss, or after which the error, fell by more than `stagnation` below the best since the data came. A pass is
// as many iterations as visit so many rows as there are to draw from: the loss of fewer says more of the sample than of
// the model. One that failed, or found no rows, counts as a pass. New data (learned or history has changed) begins this
// count anew.
//
// Threads: none of its own; one thread at a time. Blocking: never.
class Scheduler {
 public:
  explicit Scheduler(const SchedulerOptions& options);  // which are valid

  void Ask() { asked_ = true; }
  Reason Decide(const Situation& situation);
  void OnStart(base::Clock::Duration now);
  // The mean loss over the iteration's rows, and how many; not finite if it failed, which is no improvement.
  void OnFinish(base::Clock::Duration now, double training_loss, std::uint64_t rows);

  bool converged() const { return useless_ >= options_.patience; }
  base::Clock::Duration gap() const { return gap_; }
  // One sentence for people: "waiting for data: 5 passes brought no improvement".
  std::string StateText() const;

  // What is worth keeping over a restart, as finite numbers: convergence and the gap, no times and nothing asked for.
  std::vector<double> Save() const;
  // False, and nothing has changed, when the numbers cannot come from Save.
  [[nodiscard]] bool Load(std::span<const double> state);

 private:
  void NoteData(const Situation& situation);
  void AdaptGap(const Situation& situation);
  bool Improves(double value, std::optional<double>& best) const;  // and if so, it is the best
  Reason Choose(const Situation& situation) const;

  const SchedulerOptions options_;
  bool asked_ = false, drift_ = false;
  bool running_ = false;
  bool adapt_ = false;                          // an iteration ended and the gap has not answered to it
  std::optional<base::Clock::Duration> began_;  // the last iteration, or the first call
  base::Clock::Duration ended_{0};              // the same
  base::Clock::Duration took_{0};               // the last iteration
  base::Clock::Duration gap_{0};
  Reason reason_ = Reason::kNone;  // of the last decision
  Situation last_;                 // that was decided on

  // Convergence.
  std::uint64_t learned_ = 0, history_ = 0;  // the data the count below belongs to
  int useless_ = 0;                          // passes without improvement
  double pass_rows_ = 0, pass_loss_ = 0;     // visited in the present pass, and the summed loss of those
  std::optional<double> best_loss_, best_error_;
};

}  // namespace freshet::deploy
