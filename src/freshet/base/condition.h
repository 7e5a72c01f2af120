#pragma once

#include <chrono>
#include <mutex>

namespace freshet::base {

// A condition variable that keeps the time of the clock it comes from (Clock::NewCondition). Who waits holds the lock
// under which what it waits for changes, and looks again when it wakes: it may do so for no reason.
//
// Threads: any.
class Condition {
 public:
  using Duration = std::chrono::nanoseconds;
  virtual ~Condition() = default;

  virtual void Wait(std::unique_lock<std::mutex>& lock) = 0;
  // False when the clock shows `end`.
  virtual bool WaitUntil(std::unique_lock<std::mutex>& lock, Duration end) = 0;
  virtual void NotifyOne() = 0;
  virtual void NotifyAll() = 0;

  template <class Ready>
  void WaitFor(std::unique_lock<std::mutex>& lock, const Ready& ready) {
    while (!ready()) Wait(lock);
  }
  // The last ready().
  template <class Ready>
  bool WaitFor(std::unique_lock<std::mutex>& lock, Duration end, const Ready& ready) {
    while (!ready())
      if (!WaitUntil(lock, end)) return ready();
    return true;
  }
};

}  // namespace freshet::base
