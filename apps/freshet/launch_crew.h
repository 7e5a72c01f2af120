#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "launch_frozen.h"
#include "launch_worker.h"

namespace freshet::cli {

// How a worker ended.
struct Ended {
  int rank = 0;
  std::string host;
  int code = 0, signal = 0;  // of Worker
  bool asked = false;        // we had told it to end
  bool far = false;
  int frozen = 0;  // how many workers a signal had stopped, this the first of them; 0: it ended by itself

  // "rank 2 on b: exit code 3"
  std::string Text() const;
};

// Watches workers until all have ended: carries their output, passes signals on, and ends the others when one fails.
//
// When one has failed, the others have `grace` to notice and end by themselves; then they get SIGTERM, and after
// another `grace` SIGKILL. A signal from outside is passed on at once; workers then have `stop_grace`. Who is frozen
// (stopped by a signal) can do neither: it is told to end and woken as soon as the others have failed, or are told to
// end. One that is frozen among others is theirs to notice; when all are, for `frozen`, they are woken and told to end.
// Where others go on without who fails, one that is frozen for that long is killed, so that it has ended for sure.
//
// Threads: one. Ownership: the workers; borrows the clock.
class Crew {
 public:
  struct Options {
    base::Clock::Duration grace = std::chrono::seconds(5), stop_grace = std::chrono::seconds(30);
    // Told when one has failed: true when the others go on without it. They may also be joined by others (Add).
    std::function<bool(Worker& ended)> goes_on = {};
    // Told when the others cannot: true when there is nothing to keep yet, and all are to be started again. They are killed.
    std::function<bool(const Ended& ended)> begins_again = {};
    base::Clock::Duration frozen = std::chrono::seconds(4);  // longer than others take to notice one; 0: for ever
  };
  Crew(base::Clock& clock, Options options) : clock_(clock), options_(options), frozen_(clock, workers_) {}
  Crew(const Crew&) = delete;

  void Add(std::unique_ptr<Worker> worker) { workers_.push_back(std::move(worker)); }

  struct Outcome {
    int code = 0;        // for our own exit
    int stopped_by = 0;  // the first signal from outside
    bool again = false;  // all are to be started again
    // The first failure that is not the loss of another worker; else who was frozen, with code 4; else the first.
    std::optional<Ended> cause = {};
  };
  // Blocks until all have ended, or could not be made to. `next_signal` gives a signal that has come from outside since
  // it was last asked, or 0; it does not wait.
  Outcome Run(const std::function<int()>& next_signal);

 private:
  enum class Stage { kRunning, kFailed, kAsked, kKilled, kGivenUp };

  bool AnyRunning() const;
  void Carry();
  void Reap();
  void PassOn(int signal);
  void Escalate();
  void WatchFrozen();
  void SignalAll(int signal);
  void Enter(Stage stage, base::Clock::Duration patience);
  Outcome Judge() const;

  base::Clock& clock_;
  const Options options_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Ended> failures_;  // in the order they came, but for those without whom others went on
  std::vector<Ended> done_without_;
  bool one_succeeded_ = false, again_ = false;
  Stage stage_ = Stage::kRunning;
  base::Clock::Duration deadline_{};  // of the stage; none while running
  int stopped_by_ = 0, signals_ = 0;
  FrozenWorkers frozen_;
};

}  // namespace freshet::cli
