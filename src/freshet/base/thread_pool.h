#pragma once

#include <memory>
#include <vector>

#include "base/executor.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace freshet::base {

// An Executor of width() - 1 threads of its own and the caller's.
//
// Threads:  Run and RunBeside may be called from any thread; concurrent calls take turns.
// Blocking: both block until every task has returned. The destructor joins idle threads.
class ThreadPool final : public Executor {
 public:
  // Its threads live by the clock that is given, or by the system's.
  explicit ThreadPool(int width, const Clock* clock = nullptr);
  ~ThreadPool() override;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int width() const override { return static_cast<int>(threads_.size()) + 1; }
  void Run(int count, const std::function<void(int)>& task) override;
  void RunBeside(const std::function<void()>& task, const std::function<void()>& own) override;
  std::unique_ptr<Condition> NewCondition() const override { return clock_.NewCondition(); }

 private:
  void Begin(int count, const std::function<void(int)>& task) REQUIRES(mutex_);
  void Work();
  void TakeTasks() REQUIRES(mutex_);

  const SystemClock system_;
  const Clock& clock_;
  Mutex turn_;  // held by the caller whose tasks are running

  const std::unique_ptr<Condition> wake_, done_;
  std::vector<Thread> threads_;

  Mutex mutex_;
  const std::function<void(int)>* task_ GUARDED_BY(mutex_) = nullptr;
  int next_ GUARDED_BY(mutex_) = 0;
  int count_ GUARDED_BY(mutex_) = 0;
  int running_ GUARDED_BY(mutex_) = 0;
  bool stop_ GUARDED_BY(mutex_) = false;
};

// The calling thread runs when others leave a core free, from here on. Best effort.
void YieldToOthers();

}  // namespace freshet::base
