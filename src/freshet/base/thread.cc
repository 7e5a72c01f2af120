#include "base/thread.h"

#include <utility>

namespace freshet::base {

Thread::Thread(const Clock& clock, std::function<void()> body) : end_(std::make_shared<End>(clock)) {
  join_ = clock.Start([body = std::move(body), end = end_] {
    body();
    const Lock lock(end->mutex);
    end->reached = true;
    end->changed->NotifyAll();
  });
}

void Thread::Join() {
  {
    const Lock lock(end_->mutex);
    end_->changed->WaitFor(end_->mutex, [this]() REQUIRES(end_->mutex) { return end_->reached; });
  }
  std::exchange(join_, nullptr)();
}

}  // namespace freshet::base
