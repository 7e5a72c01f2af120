#include "base/jobs.h"

#include <utility>

#include "base/check.h"

namespace freshet::base {

void Jobs::Post(Job job) {
  {
    const Lock lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  posted_.Ring();
}

bool Jobs::RunOne() {
  Job job;
  {
    const Lock lock(mutex_);
    if (jobs_.empty()) return false;
    job = std::move(jobs_.front());
    jobs_.pop_front();
  }
  job();
  return true;
}

JobThread::~JobThread() {
  {
    const Lock lock(mutex_);
    stop_ = true;
  }
  posted_.Ring();
  if (thread_.joinable()) thread_.Join();
}

bool JobThread::Post(Jobs::Job job) {
  const Lock lock(mutex_);
  CHECK(!stop_ || std::this_thread::get_id() == worker_);
  jobs_.Post(std::move(job));
  if (thread_.joinable()) return false;
  thread_ = Thread(clock_, [this] { Work(); });
  return true;
}

void JobThread::Work() {
  {
    const Lock lock(mutex_);
    worker_ = std::this_thread::get_id();
  }
  while (true) {
    if (jobs_.RunOne()) continue;
    Lock lock(mutex_);
    const bool last = stop_;
    lock.unlock();
    if (last && !jobs_.RunOne()) return;
    if (!last) posted_.Wait();
  }
}

}  // namespace freshet::base
