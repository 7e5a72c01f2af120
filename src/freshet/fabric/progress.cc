#include "fabric/progress.h"

#include <utility>

#include "base/check.h"

namespace freshet::fabric {

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_->NotifyAll();
  if (thread_.joinable()) thread_.Join();
}

bool Progress::Post(std::function<void()> job) {
  bool started = false;
  {
    const std::lock_guard lock(mutex_);
    CHECK(!stop_ || std::this_thread::get_id() == worker_);
    jobs_.push_back(std::move(job));
    started = !thread_.joinable();
    if (started) thread_ = base::Thread(clock_, [this] { Work(); });
  }
  wake_->NotifyOne();
  return started;
}

void Progress::Work() {
  std::unique_lock lock(mutex_);
  worker_ = std::this_thread::get_id();
  while (true) {
    wake_->WaitFor(lock, [this] { return stop_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    lock.lock();
  }
}

}  // namespace freshet::fabric
