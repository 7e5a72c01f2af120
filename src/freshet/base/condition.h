#pragma once

#include <chrono>

#include "base/mutex.h"

namespace freshet::base {

// A condition variable that keeps the time of the clock it comes from (Clock::NewCondition). Who waits holds the mutex
// under which what it waits for changes, and looks again when it wakes: it may do so for no reason.
//
// Threads: any.
class Condition {
 public:
  using Duration = std::chrono::nanoseconds;
  virtual ~Condition() = default;

  virtual void Wait(Mutex& held) REQUIRES(held) = 0;
  // False when the clock shows `end`.
  virtual bool WaitUntil(Mutex& held, Duration end) REQUIRES(held) = 0;
  virtual void NotifyOne() = 0;
  virtual void NotifyAll() = 0;

  // `ready` is called with the mutex held, and says so: [this]() REQUIRES(mutex_) { … }. The checker cannot see that the
  // mutex it names is this one.
  template <class Ready>
  void WaitFor(Mutex& held, const Ready& ready) REQUIRES(held) UNCHECKED_LOCKS {
    while (!ready()) Wait(held);
  }
  // The last ready().
  template <class Ready>
  bool WaitFor(Mutex& held, Duration end, const Ready& ready) REQUIRES(held) UNCHECKED_LOCKS {
    while (!ready())
      if (!WaitUntil(held, end)) return ready();
    return true;
  }
};

}  // namespace freshet::base
