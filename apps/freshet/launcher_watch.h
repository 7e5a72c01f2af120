#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/bell.h"
#include "base/thread.h"

namespace freshet::cli {

// Ends this worker when the launcher that started it (mpirun, torchrun, srun) is gone without having told it to end:
// after kill -9, or when the system took its memory. All workers are alive then, so none would miss another.
//
// The launcher is the nearest process above this one that lacks a variable it has set for those it started: scripts
// between the two have it. A worker ends as by SIGTERM (a checkpoint is written, exit code 143), and after 30 s at
// once.
//
// Threads: makes one, which looks four times a second. Blocking: the destructor, until that has ended. Failure: none;
// where no such process can be seen there is nothing to watch.
class LauncherWatch {
 public:
  // `mark`: that variable (fabric::Place::mark). Empty: nothing is watched.
  explicit LauncherWatch(const std::string& mark);
  LauncherWatch(const LauncherWatch&) = delete;
  ~LauncherWatch();

 private:
  void Watch();
  bool LauncherIsThere() const;

  pid_t launcher_ = 0;
  std::uint64_t started_ = 0;

  const base::SystemClock clock_;
  base::Bell over_{clock_};
  base::Thread thread_;
};

}  // namespace freshet::cli
