#pragma once

#include "base/env.h"
#include "base/thread_pool.h"

namespace freshet::base {

// The world as it is: the disk, the clock and the cores of this machine, for a program that has no reason to hand in
// others. Lines of the log go to `sink`.
//
// Threads: as its parts. Ownership: owns them; outlives what borrows an env of it.
class System {
 public:
  explicit System(Log::Sink sink, int threads = 0);  // 0: every core
  System(const System&) = delete;

  Env env() { return {files_, clock_, log_, pool_, faults_}; }

 private:
  PosixFiles files_;
  SystemClock clock_;
  Log log_;
  ThreadPool pool_;
  Faults faults_;
};

}  // namespace freshet::base
