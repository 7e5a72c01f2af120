#include "base/thread_pool.h"

#include <sched.h>

#include <utility>

#include "base/check.h"
#include "base/fibers.h"

namespace freshet::base {
namespace {

// Calls a task; this thread is in one of that pool meanwhile.
template <class Task>
void CallFor(const ThreadPool& pool, const Task& task) {
  const void* const outer = std::exchange(Fibers::Own(), &pool);
  task();
  Fibers::Own() = outer;
}

}  // namespace

ThreadPool::ThreadPool(int width, const Clock* clock)
    : clock_(clock != nullptr ? *clock : system_), wake_(clock_.NewCondition()), done_(clock_.NewCondition()) {
  CHECK(width >= 1);
  for (int i = 1; i < width; ++i) threads_.emplace_back(clock_, [this] { Work(); });
}

ThreadPool::~ThreadPool() {
  {
    const Lock lock(mutex_);
    stop_ = true;
  }
  wake_->NotifyAll();
  for (Thread& thread : threads_) thread.Join();
}

void ThreadPool::Run(int count, const std::function<void(int)>& task) {
  CHECK(Fibers::Own() != this);  // a task that waits for the pool it runs on would wait for ever
  const Lock turn(turn_);
  const Lock lock(mutex_);
  Begin(count, task);
  TakeTasks();
  done_->WaitFor(mutex_, [this]() REQUIRES(mutex_) { return running_ == 0; });
  task_ = nullptr;
}

void ThreadPool::RunBeside(const std::function<void()>& task, const std::function<void()>& own) {
  CHECK(Fibers::Own() != this);
  const Lock turn(turn_);
  const std::function<void(int)> each = [&](int) { task(); };
  Lock lock(mutex_);
  Begin(width() - 1, each);
  lock.unlock();
  CallFor(*this, own);
  lock.lock();
  count_ = next_;  // what has not begun never does
  done_->WaitFor(mutex_, [this]() REQUIRES(mutex_) { return running_ == 0; });
  task_ = nullptr;
}

void ThreadPool::Begin(int count, const std::function<void(int)>& task) {
  task_ = &task;
  next_ = 0;
  count_ = count;
  wake_->NotifyAll();
}

void ThreadPool::TakeTasks() {
  while (next_ < count_) {
    const int mine = next_++;
    const std::function<void(int)>& task = *task_;
    ++running_;
    mutex_.unlock();
    CallFor(*this, [&] { task(mine); });
    mutex_.lock();
    if (--running_ == 0 && next_ >= count_) done_->NotifyAll();
  }
}

void ThreadPool::Work() {
  const Lock lock(mutex_);
  while (true) {
    wake_->WaitFor(mutex_, [this]() REQUIRES(mutex_) { return stop_ || next_ < count_; });
    if (stop_) return;
    TakeTasks();
  }
}

void YieldToOthers() {
  // Not only a low priority, with which it would keep a core for a whole time slice: whoever else wakes up runs at
  // once.
  const sched_param none{};
  (void)sched_setscheduler(0, SCHED_IDLE, &none);
}

}  // namespace freshet::base
