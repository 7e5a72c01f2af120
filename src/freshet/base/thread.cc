#include "base/thread.h"

#include <utility>

namespace freshet::base {

Thread::Thread(const Clock& clock, std::function<void()> body) : end_(std::make_shared<End>(clock)) {
  thread_ = std::thread(clock.Live([body = std::move(body), end = end_] {
    body();
    const std::lock_guard lock(end->mutex);
    end->reached = true;
    end->changed->NotifyAll();
  }));
}

void Thread::Join() {
  {
    std::unique_lock lock(end_->mutex);
    end_->changed->WaitFor(lock, [this] { return end_->reached; });
  }
  thread_.join();
}

}  // namespace freshet::base
