#include "base/clock.h"

#include <poll.h>

#include <algorithm>
#include <condition_variable>
#include <ctime>
#include <thread>

namespace freshet::base {
namespace {

class SystemCondition final : public Condition {
 public:
  explicit SystemCondition(const Clock& clock) : clock_(clock) {}
  void Wait(Mutex& held) override {
    std::unique_lock lock(held.underneath(), std::adopt_lock);
    changed_.wait(lock);
    lock.release();
  }
  bool WaitUntil(Mutex& held, Duration end) override {
    // Not wait_until: the farthest ends do not fit a moment of the system.
    const Duration left = end - clock_.Now();
    if (left.count() <= 0) return false;
    constexpr Duration kLong = std::chrono::hours(1);
    std::unique_lock lock(held.underneath(), std::adopt_lock);
    const bool woken = changed_.wait_for(lock, std::min(left, kLong)) == std::cv_status::no_timeout;
    lock.release();
    return woken || left > kLong;
  }
  void NotifyOne() override { changed_.notify_one(); }
  void NotifyAll() override { changed_.notify_all(); }

 private:
  const Clock& clock_;
  std::condition_variable changed_;
};

}  // namespace

Clock::Duration SystemClock::Now() const { return std::chrono::steady_clock::now().time_since_epoch(); }
Clock::Duration SystemClock::Wall() const { return std::chrono::system_clock::now().time_since_epoch(); }
void SystemClock::Sleep(Duration duration) { std::this_thread::sleep_for(duration); }

std::unique_ptr<Condition> Clock::NewCondition() const { return std::make_unique<SystemCondition>(*this); }

std::function<void()> Clock::Start(std::function<void()> body) const {
  return [thread = std::make_shared<std::thread>(std::move(body))] { thread->join(); };
}

bool Clock::WaitReadable(int descriptor, Duration end) const {
  const Duration left = std::clamp<Duration>(end - Now(), Duration(0), std::chrono::hours(1));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
  const timespec most{.tv_sec = seconds.count(), .tv_nsec = (left - seconds).count()};
  pollfd one{.fd = descriptor, .events = POLLIN, .revents = 0};
  return ::ppoll(&one, 1, &most, nullptr) > 0;
}

}  // namespace freshet::base
