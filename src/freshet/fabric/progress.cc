#include "fabric/progress.h"

#include <utility>

#include "base/check.h"

namespace freshet::fabric {

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool Progress::Post(std::function<void()> job) {
  bool started = false;
  {
    const std::lock_guard lock(mutex_);
    CHECK(!stop_ || std::this_thread::get_id() == thread_.get_id());
    jobs_.push_back(std::move(job));
    started = !thread_.joinable();
    if (started) thread_ = std::thread([this] { Work(); });
  }
  wake_.notify_one();
  return started;
}

void Progress::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    lock.lock();
  }
}

}  // namespace freshet::fabric
