#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace freshet::deploy {

// Rung by whoever has news for a thread that waits for some.
//
// Threads: any.
class Bell {
 public:
  void Ring() {
    {
      const std::lock_guard lock(mutex_);
      rung_ = true;
    }
    ready_.notify_one();
  }
  // Returns when it was rung since the last Wait, or after `most`.
  void Wait(std::chrono::nanoseconds most) {
    std::unique_lock lock(mutex_);
    ready_.wait_for(lock, most, [this] { return rung_; });
    rung_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  bool rung_ = false;
};

// Work that one thread leaves for another, in order.
//
// Threads: Post from any; RunOne by one at a time.
class Background {
 public:
  explicit Background(Bell& bell) : bell_(bell) {}
  void Post(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    bell_.Ring();
  }
  // Runs the oldest task; false when there was none.
  bool RunOne() {
    std::function<void()> task;
    {
      const std::lock_guard lock(mutex_);
      if (tasks_.empty()) return false;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
    return true;
  }

 private:
  Bell& bell_;
  std::mutex mutex_;
  std::deque<std::function<void()>> tasks_;
};

}  // namespace freshet::deploy
