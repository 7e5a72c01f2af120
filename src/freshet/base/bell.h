#pragma once

#include <memory>

#include "base/clock.h"
#include "base/mutex.h"

namespace freshet::base {

// Rung by whoever has news for a thread that waits for some.
//
// Threads: any. Ownership: borrows the clock.
class Bell {
 public:
  explicit Bell(const Clock& clock) : clock_(clock), rings_(clock.NewCondition()) {}

  void Ring() {
    const Lock lock(mutex_);
    rung_ = true;
    rings_->NotifyOne();
  }
  // Returns when it was rung since the last Wait.
  void Wait() {
    const Lock lock(mutex_);
    rings_->WaitFor(mutex_, [this]() REQUIRES(mutex_) { return rung_; });
    rung_ = false;
  }
  // The same, or false after `most`.
  bool Wait(Clock::Duration most) {
    const Lock lock(mutex_);
    const bool rung = rings_->WaitFor(mutex_, clock_.Now() + most, [this]() REQUIRES(mutex_) { return rung_; });
    rung_ = false;
    return rung;
  }

 private:
  const Clock& clock_;
  const std::unique_ptr<Condition> rings_;
  Mutex mutex_;
  bool rung_ GUARDED_BY(mutex_) = false;
};

}  // namespace freshet::base
