#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace freshet::fabric {

// A thread that runs jobs one after the other; it starts with the first.
//
// Threads:   Post from any thread, also from a job. Once the destructor has begun, from a job only: a Post from
//            elsewhere is a bug (CHECK).
// Blocking:  the destructor returns when every job that was posted has run, also those that a last job posts. Who owns
//            it first sees to it that nothing they wait for can keep them.
class Progress {
 public:
  Progress() = default;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  // True when this call started the thread.
  bool Post(std::function<void()> job);

 private:
  void Work();

  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace freshet::fabric
