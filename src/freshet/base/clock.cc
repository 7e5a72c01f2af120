#include "base/clock.h"

#include <thread>

namespace freshet::base {

Clock::Duration SystemClock::Now() const { return std::chrono::steady_clock::now().time_since_epoch(); }
Clock::Duration SystemClock::Wall() const { return std::chrono::system_clock::now().time_since_epoch(); }
void SystemClock::Sleep(Duration duration) { std::this_thread::sleep_for(duration); }

Clock::Duration ManualClock::Now() const {
  const std::lock_guard lock(mutex_);
  return now_;
}
void ManualClock::Advance(Duration duration) {
  const std::lock_guard lock(mutex_);
  now_ += duration;
}

}  // namespace freshet::base
