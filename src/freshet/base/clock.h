#pragma once

#include <chrono>
#include <mutex>

namespace freshet::base {

// Time as an input. Nothing above base/ reads a clock of its own, so that tests and simulations can turn the hands.
//
// Threads: any.
class Clock {
 public:
  using Duration = std::chrono::nanoseconds;
  virtual ~Clock() = default;
  virtual Duration Now() const = 0;   // monotonic, from an arbitrary start
  virtual Duration Wall() const = 0;  // since 1970-01-01 UTC
  virtual void Sleep(Duration duration) = 0;
};

class SystemClock final : public Clock {
 public:
  Duration Now() const override;
  Duration Wall() const override;
  void Sleep(Duration duration) override;
};

// Moves only when told to: Sleep returns at once and moves the hands.
class ManualClock final : public Clock {
 public:
  Duration Now() const override;
  Duration Wall() const override { return Now(); }
  void Sleep(Duration duration) override { Advance(duration); }
  void Advance(Duration duration);

 private:
  mutable std::mutex mutex_;  // guards now_
  Duration now_{0};
};

inline double Seconds(Clock::Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace freshet::base
