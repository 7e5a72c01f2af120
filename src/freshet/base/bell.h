#pragma once

#include <memory>
#include <mutex>

#include "base/clock.h"

namespace freshet::base {

// Rung by whoever has news for a thread that waits for some.
//
// Threads: any. Ownership: borrows the clock.
class Bell {
 public:
  explicit Bell(const Clock& clock) : clock_(clock), rings_(clock.NewCondition()) {}

  void Ring() {
    const std::lock_guard lock(mutex_);
    rung_ = true;
    rings_->NotifyOne();
  }
  // Returns when it was rung since the last Wait.
  void Wait() {
    std::unique_lock lock(mutex_);
    rings_->WaitFor(lock, [this] { return rung_; });
    rung_ = false;
  }
  // The same, or after `most`.
  void Wait(Clock::Duration most) {
    std::unique_lock lock(mutex_);
    (void)rings_->WaitFor(lock, clock_.Now() + most, [this] { return rung_; });
    rung_ = false;
  }

 private:
  const Clock& clock_;
  const std::unique_ptr<Condition> rings_;
  std::mutex mutex_;  // guards rung_
  bool rung_ = false;
};

}  // namespace freshet::base
