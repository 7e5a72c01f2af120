#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "base/thread.h"

namespace freshet::fabric {

// A thread that lives by a clock and runs jobs one after the other; it starts with the first.
//
// Threads:   Post from any thread, also from a job. Once the destructor has begun, from a job only: a Post from
//            elsewhere is a bug (CHECK).
// Blocking:  the destructor returns when every job that was posted has run, also those that a last job posts. Who owns
//            it first sees to it that nothing they wait for can keep them.
class Progress {
 public:
  explicit Progress(const base::Clock& clock) : clock_(clock), wake_(clock.NewCondition()) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  // True when this call started the thread.
  bool Post(std::function<void()> job);

 private:
  void Work();

  const base::Clock& clock_;
  const std::unique_ptr<base::Condition> wake_;

  std::mutex mutex_;  // guards what follows
  std::deque<std::function<void()>> jobs_;
  bool stop_ = false;
  base::Thread thread_;
  std::thread::id worker_;
};

}  // namespace freshet::fabric
