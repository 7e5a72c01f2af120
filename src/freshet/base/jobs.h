#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "base/bell.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace freshet::base {

// Jobs that threads leave for another one, which runs them in the order they came. The one queue there is: whoever ends
// in order runs what is left in it first. What is left when a queue is destroyed is dropped, as a crash would.
//
// Threads: any; RunOne by one at a time.
class Jobs {
 public:
  using Job = std::function<void()>;
  explicit Jobs(Bell& posted) : posted_(posted) {}  // rung with every job

  void Post(Job job);
  // Runs the oldest; false when there is none.
  bool RunOne();

 private:
  Bell& posted_;
  Mutex mutex_;
  std::deque<Job> jobs_ GUARDED_BY(mutex_);
};

// A thread that lives by a clock and runs jobs one after the other; it starts with the first.
//
// Threads:   Post from any thread, also from a job. Once the destructor has begun, from a job only: a Post from
//            elsewhere is a bug (CHECK).
// Blocking:  the destructor returns when every job that was posted has run, also those that a last job posts. Who owns
//            it first sees to it that nothing they wait for can keep them.
class JobThread {
 public:
  explicit JobThread(const Clock& clock) : clock_(clock), posted_(clock), jobs_(posted_) {}
  JobThread(const JobThread&) = delete;
  JobThread& operator=(const JobThread&) = delete;
  ~JobThread();

  // True when this call started the thread.
  bool Post(Jobs::Job job);

 private:
  void Work();

  const Clock& clock_;
  Bell posted_;
  Jobs jobs_;

  Mutex mutex_;
  bool stop_ GUARDED_BY(mutex_) = false;
  Thread thread_ GUARDED_BY(mutex_);
  std::thread::id worker_ GUARDED_BY(mutex_);
};

}  // namespace freshet::base
