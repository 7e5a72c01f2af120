#pragma once

#include <cstddef>

#include "base/clock.h"

namespace freshet::serve {

// Whether bytes come (or go) as fast as they must: so many a second over each window of time, and no longer pause
// between two of them than is allowed. What came fast before buys no time later.
//
// Threads: one at a time.
class HttpPace {
 public:
  using Duration = base::Clock::Duration;
  struct Rule {
    std::size_t bytes_per_s;
    Duration window;  // that the bytes are counted over
    Duration pause;   // at most, between two moves
  };
  explicit HttpPace(Rule rule) : rule_(rule) {}

  void Begin(Duration now) { window_since_ = moved_at_ = now, moved_ = 0; }
  void Move(std::size_t bytes, Duration now) {
    if (bytes == 0) return;
    moved_ += bytes;
    moved_at_ = now;
  }
  // To be asked from time to time; a window ends at the first question after it.
  bool TooSlow(Duration now) {
    if (now - moved_at_ >= rule_.pause) return true;
    const Duration passed = now - window_since_;
    if (passed < rule_.window) return false;
    if (static_cast<double>(moved_) < base::Seconds(passed) * static_cast<double>(rule_.bytes_per_s)) return true;
    window_since_ = now;
    moved_ = 0;
    return false;
  }

 private:
  const Rule rule_;
  Duration window_since_{0}, moved_at_{0};
  std::size_t moved_ = 0;  // in this window
};

}  // namespace freshet::serve
