#pragma once

#include <functional>
#include <memory>

#include "base/clock.h"

namespace freshet::base {

// Who needs threads gets an executor from the door; nobody else starts one.
class Executor {
 public:
  virtual ~Executor() = default;

  // How many tasks run at the same time.
  virtual int width() const = 0;

  // Calls task(0) … task(count - 1), on up to width() threads, and returns when all have returned. Tasks are started in
  // order, but a later one may never run beside an earlier one: task i must not wait for task j > i.
  // Not to be called from inside a task.
  virtual void Run(int count, const std::function<void(int)>& task) = 0;

  // Calls own() on the caller's thread and, beside it, task() once on each of the other threads there are. Returns when
  // all that were begun have returned; a task that has not begun when own() returns never does. So own() must not wait
  // for a task to begin, and tasks must come to an end once own() has. Not to be called from inside a task, nor may
  // own() call the executor.
  virtual void RunBeside(const std::function<void()>& task, const std::function<void()>& own) = 0;

  // What tasks wait with for one another.
  virtual std::unique_ptr<Condition> NewCondition() const = 0;
};

// Runs everything on the caller's thread.
class InlineExecutor final : public Executor {
 public:
  int width() const override { return 1; }
  void Run(int count, const std::function<void(int)>& task) override {
    for (int i = 0; i < count; ++i) task(i);
  }
  void RunBeside(const std::function<void()>&, const std::function<void()>& own) override { own(); }
  std::unique_ptr<Condition> NewCondition() const override { return clock_.NewCondition(); }

 private:
  SystemClock clock_;  // nobody is there to be waited for
};

}  // namespace freshet::base
