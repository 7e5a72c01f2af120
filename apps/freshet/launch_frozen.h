#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "launch_worker.h"

namespace freshet::cli {

// Finds workers that a signal has stopped (SIGSTOP, SIGTSTP): they are there, and can neither act on a signal nor end.
//
// Time is that of our own running: when launch was stopped together with its workers, and goes on together with them,
// they were not frozen in the meantime.
//
// Threads: one. Ownership: borrows clock and workers. Blocking: never; it reads /proc of each worker every 0.2 s.
class FrozenWorkers {
 public:
  FrozenWorkers(const base::Clock& clock, const std::vector<std::unique_ptr<Worker>>& workers)
      : clock_(clock), workers_(workers) {}

  // Looks anew when it is time to; true when it did.
  bool Look();
  // How long all workers that have not ended have been frozen.
  base::Clock::Duration all_for() const { return all_for_; }
  // Wakes those that are frozen, to act on what they are told: to end, unless they were told before. One that is frozen
  // again and again for a second is killed.
  void WakeToEnd();
  // Kills those that have been frozen for so long.
  void KillAfter(base::Clock::Duration limit);
  // Who was found frozen when all was to end, in the order they were found.
  const std::vector<const Worker*>& woken() const { return woken_; }

 private:
  const base::Clock& clock_;
  const std::vector<std::unique_ptr<Worker>>& workers_;
  base::Clock::Duration last_look_{-1}, all_for_{};
  std::vector<Worker*> frozen_;  // at the last look
  std::map<Worker*, base::Clock::Duration> frozen_for_;
  std::vector<const Worker*> woken_;
};

}  // namespace freshet::cli
