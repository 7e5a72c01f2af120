#pragma once

#include <condition_variable>
#include <list>

#include "base/clock.h"
#include "base/mutex.h"

namespace freshet::base {

// A clock whose hands jump to the next moment somebody waits for as soon as all threads that live by it wait: an hour
// passes in no time, and nothing that could have happened before is left out. While one of them runs, time stands.
//
// Which threads live by it must be known: those of base::Thread do, and who holds a Participant. Others may read it and
// wait by it, but time does not stand for them. Of descriptors it is taken that what was written to one is there within
// a millisecond of real time.
//
// Threads: any.
class SimulatedClock : public Clock {
 public:
  SimulatedClock() = default;
  SimulatedClock(const SimulatedClock&) = delete;
  SimulatedClock& operator=(const SimulatedClock&) = delete;

  Duration Now() const override;
  Duration Wall() const override { return Now(); }
  void Sleep(Duration duration) override;
  std::unique_ptr<Condition> NewCondition() const override;
  bool WaitReadable(int descriptor, Duration end) const override;
  std::function<void()> Start(std::function<void()> body) const override;

  void Advance(Duration duration);  // by hand

  // The thread that makes it lives by the clock until it is gone. One for each thread at a time.
  class Participant {
   public:
    explicit Participant(const SimulatedClock& clock);
    ~Participant();
    Participant(const Participant&) = delete;
    Participant& operator=(const Participant&) = delete;

   private:
    const SimulatedClock& clock_;
  };

 private:
  class Turnstile;
  struct Waiter {
    const void* on = nullptr;  // the condition; none: only time
    int descriptor = -1;
    Duration end = Duration::max();
    bool counts = false;  // a participant's
    bool woken = false, notified = false;
    std::condition_variable_any wake = {};
  };

  // Waits as the waiter says; `after` is called once it is known to wait. False when time is over.
  bool Await(Waiter& waiter, const std::function<void()>& after) const;
  void Wake(Waiter& waiter) const REQUIRES(mutex_);
  void MoveHands() const REQUIRES(mutex_);                 // if nobody runs
  bool WakeReadable(int patience) const REQUIRES(mutex_);  // those whose descriptor can be read, if there are any
  void WakeDue() const REQUIRES(mutex_);
  void Notify(const void* on, bool all) const;
  void Enter() const;
  void Leave() const;

  mutable Mutex mutex_;
  mutable Duration now_ GUARDED_BY(mutex_){0};
  mutable int running_ GUARDED_BY(mutex_) = 0;  // participants that do not wait
  mutable std::list<Waiter*> waiters_ GUARDED_BY(mutex_);
};

// Moves only when told to: Sleep returns at once and moves the hands.
class ManualClock final : public SimulatedClock {
 public:
  void Sleep(Duration duration) override { Advance(duration); }
};

}  // namespace freshet::base
