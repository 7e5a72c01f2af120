#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/clock.h"

namespace freshet::base {

// What else goes on in simulated time, at a pace of its own: a network that another simulator moves.
class Pace {
 public:
  virtual ~Pace() = default;
  // Lets its time pass to `until`, or only to where the first thing happens; gives the time it is then. What happens
  // tells whom it concerns meanwhile. Duration::max(): there is nothing else to come.
  virtual Clock::Duration Advance(Clock::Duration until) = 0;
};

// A clock whose threads (base::Thread) are fibers of one thread: they take turns, each until it waits, and time moves
// when all wait. Who of those that could go on does so is drawn from a seed: a run is the same every time, and another
// seed is another order of what happens at once.
//
// A fiber belongs to a house, and so does what it starts. A house can be frozen: nothing of it runs until it is thawed.
// Events happen at their time, beside all fibers; they do not wait.
//
// Threads:  one makes it and calls Run; everything else is called before, from fibers and from events. Mutexes are
//           base::Mutex: who waits for one lets others run.
// Blocking: Run, until all fibers have ended; events after that do not happen. When no fiber can ever go on, the
//           program is wrong (CHECK).
class Fibers final : public Clock {
 public:
  explicit Fibers(std::uint64_t seed = 1);
  ~Fibers() override;
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  Duration Now() const override;
  Duration Wall() const override { return Now(); }
  void Sleep(Duration duration) override;
  std::unique_ptr<Condition> NewCondition() const override;
  bool WaitReadable(int descriptor, Duration end) const override;  // never: nothing outside happens in its time
  std::function<void()> Start(std::function<void()> body) const override;

  void StartIn(int house, std::function<void()> body);
  void At(Duration when, std::function<void()> event);
  void Run(Pace* beside = nullptr);

  int house() const;  // of the fiber that runs
  void Freeze(int house);
  void Thaw(int house);

  // What a thread_local variable is to a thread: a word of the fiber that runs, or of the thread where none does.
  static const void*& Own();
  // For a mutex that could not be had (again: nor when it was tried again): lets others run. False when no fiber calls.
  static bool LetOthersRun(bool again);

 private:
  class Turnstile;
  struct Scheduler;
  std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace freshet::base
