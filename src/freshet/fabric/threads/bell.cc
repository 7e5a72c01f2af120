#include "fabric/threads/bell.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <ctime>

namespace freshet::fabric {

void Bell::Yield() { sched_yield(); }

void Bell::Wake() {
  rings_.fetch_add(1);
  if (other_time_ == nullptr) {
    syscall(SYS_futex, &rings_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
    return;
  }
  const base::Lock lock(other_time_->mutex);
  other_time_->rung->NotifyAll();
}

void Bell::Sleep(std::uint32_t seen, base::Clock::Duration most) {
  static_assert(sizeof rings_ == 4 && std::atomic<std::uint32_t>::is_always_lock_free);
  if (other_time_ == nullptr) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(most);
    const timespec span{.tv_sec = seconds.count(), .tv_nsec = static_cast<long>((most - seconds).count())};
    syscall(SYS_futex, &rings_, FUTEX_WAIT_PRIVATE, seen, &span, nullptr, 0);
    return;
  }
  const base::Lock lock(other_time_->mutex);
  if (rings_.load() == seen) other_time_->rung->WaitUntil(other_time_->mutex, other_time_->clock.Now() + most);
}

}  // namespace freshet::fabric
