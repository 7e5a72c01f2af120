#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "base/condition.h"

namespace freshet::base {

// Time as an input: read, slept through and waited on. Nothing above base/ has a clock of its own, so that tests and
// simulations can turn the hands (simulated_clock.h). A clock that says nothing else waits as the system does.
//
// Threads: any. Lifetime: a clock outlives the conditions it made and the threads that live by it.
class Clock {
 public:
  using Duration = Condition::Duration;
  virtual ~Clock() = default;
  virtual Duration Now() const = 0;   // monotonic, from an arbitrary start
  virtual Duration Wall() const = 0;  // since 1970-01-01 UTC
  virtual void Sleep(Duration duration) = 0;

  // What threads wait with for something that other threads do.
  virtual std::unique_ptr<Condition> NewCondition() const;
  // Waits until a descriptor can be read or has failed, or until the clock shows `end`; false when it does.
  virtual bool WaitReadable(int descriptor, Duration end) const;
  // Starts a thread that lives by this clock until its body has returned. What this gives joins it. See Thread.
  virtual std::function<void()> Start(std::function<void()> body) const;
};

class SystemClock final : public Clock {
 public:
  Duration Now() const override;
  Duration Wall() const override;
  void Sleep(Duration duration) override;
};

inline double Seconds(Clock::Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace freshet::base
