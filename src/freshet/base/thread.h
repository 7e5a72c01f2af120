#pragma once

#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/mutex.h"

namespace freshet::base {

// A thread that lives by a clock (Clock::Start). Rooms that have threads of their own have these, so that a simulated
// clock knows of them.
//
// Threads: one handles it. Blocking: Join, until the body has returned. Every thread is joined before its end.
class Thread {
 public:
  Thread() = default;
  Thread(const Clock& clock, std::function<void()> body);
  Thread(Thread&&) = default;
  Thread& operator=(Thread&&) = default;

  bool joinable() const { return join_ != nullptr; }
  void Join();

 private:
  struct End {
    explicit End(const Clock& clock) : changed(clock.NewCondition()) {}
    Mutex mutex;
    std::unique_ptr<Condition> changed;
    bool reached GUARDED_BY(mutex) = false;
  };
  std::shared_ptr<End> end_;
  std::function<void()> join_;
};

}  // namespace freshet::base
