#include "fabric/threads/bell.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <ctime>

namespace freshet::fabric {
namespace {

// A clock that is turned by hand wakes nobody: look at it this often.
constexpr base::Clock::Duration kLongestSleep = std::chrono::milliseconds(20);

}  // namespace

void Bell::Yield() { sched_yield(); }

void Bell::Wake() {
  rings_.fetch_add(1);
  syscall(SYS_futex, &rings_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void Bell::Sleep(std::uint32_t seen, base::Clock::Duration most) {
  static_assert(sizeof rings_ == 4 && std::atomic<std::uint32_t>::is_always_lock_free);
  const timespec span{.tv_sec = 0, .tv_nsec = static_cast<long>(std::min(most, kLongestSleep).count())};
  syscall(SYS_futex, &rings_, FUTEX_WAIT_PRIVATE, seen, &span, nullptr, 0);
}

}  // namespace freshet::fabric
