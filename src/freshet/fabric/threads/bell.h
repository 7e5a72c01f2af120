#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"

namespace freshet::fabric {

// How long a thread looks before it sleeps. With a core for each thread looking is fastest; with more threads than
// cores it keeps away the very thread it waits for.
struct Patience {
  int looks = 0;   // with a pause of the processor between them
  int yields = 0;  // with the core given to others between them
};

// Lets threads sleep until something they look at has changed.
//
// Whoever changes it does so by a sequentially consistent store and then rings; whoever waits looks by sequentially
// consistent loads. Then either the ringer sees the sleeper, or the sleeper sees the change: no ring is lost, and
// ringing costs one load while nobody sleeps.
//
// Threads: any.
class alignas(64) Bell {
 public:
  // Before its use, where the clock is not the system's: sleeping goes by its conditions.
  void LiveBy(const base::Clock& clock) { other_time_ = std::make_unique<OtherTime>(clock); }

  void Ring() {
    if (sleepers_.load() != 0) Wake();
  }

  // Until ready() or the timeout has passed; the last ready(). The clock is first read when the looking was in vain. Who
  // gives its core away and gets it back late is on a machine where strangers want it, too, and would wait as long each
  // time: the next waits go without.
  template <class Ready>
  bool Await(const Ready& ready, Patience patience, const base::Clock& clock, base::Clock::Duration timeout) {
    for (int i = 0; i < patience.looks; ++i) {
      if (ready()) return true;
      Pause();
    }
    const base::Clock::Duration start = clock.Now();
    if (const int left = waits_without_.load(std::memory_order_relaxed); left > 0) {
      waits_without_.store(left - 1, std::memory_order_relaxed);
    } else {
      base::Clock::Duration last = start;
      for (int i = 0; i < patience.yields; ++i) {
        if (ready()) return true;
        Yield();
        const base::Clock::Duration now = clock.Now();
        if (now - std::exchange(last, now) < kLate) continue;
        waits_without_.store(kWaitsWithout, std::memory_order_relaxed);
        break;
      }
    }
    while (true) {
      const std::uint32_t seen = rings_.load();
      sleepers_.fetch_add(1);
      const bool done = ready();
      const base::Clock::Duration left = done ? timeout : timeout - (clock.Now() - start);
      if (!done && left.count() > 0) Sleep(seen, left);
      sleepers_.fetch_sub(1);
      if (done || left.count() <= 0) return done;
    }
  }

 private:
  // Strangers are given more at a time, those one works with need less.
  static constexpr std::chrono::milliseconds kLate{1};
  static constexpr int kWaitsWithout = 256;

  static void Pause();
  static void Yield();
  void Wake();
  void Sleep(std::uint32_t seen, base::Clock::Duration most);  // returns when rung since `seen`, or for no reason

  struct OtherTime {
    explicit OtherTime(const base::Clock& its) : clock(its), rung(its.NewCondition()) {}
    const base::Clock& clock;
    base::Mutex mutex;  // under which sleepers look at rings_ for the last time
    const std::unique_ptr<base::Condition> rung;
  };

  std::atomic<std::uint32_t> rings_{0};
  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<int> waits_without_{0};  // yielding; a guess, which no lock guards
  std::unique_ptr<OtherTime> other_time_;
};

inline void Bell::Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace freshet::fabric
