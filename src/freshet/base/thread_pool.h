#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/executor.h"
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
  void Begin(int count, const std::function<void(int)>& task);
  void Work();
  void TakeTasks(std::unique_lock<std::mutex>& lock);

  const SystemClock system_;
  const Clock& clock_;
  std::mutex turn_;  // held by the caller whose tasks are running

  std::mutex mutex_;  // guards everything below
  const std::unique_ptr<Condition> wake_, done_;
  const std::function<void(int)>* task_ = nullptr;
  int next_ = 0, count_ = 0, running_ = 0;
  bool stop_ = false;
  std::vector<Thread> threads_;
};

// The calling thread runs when others leave a core free, from here on. Best effort.
void YieldToOthers();

}  // namespace freshet::base
