#include "fabric/sim/cores.h"

#include <algorithm>
#include <cmath>

namespace freshet::fabric::sim {

Cores::Cores(base::Fibers& fibers, int count)
    : fibers_(fibers), count_(count), passed_(fibers.Now()), changed_(fibers.NewCondition()) {}

double Cores::Rate() const { return std::min(1.0, count_ / std::max(wanted_, 1e-9)) / slowness_; }

void Cores::Pass() {
  const double seconds = base::Seconds(fibers_.Now() - passed_);
  passed_ = fibers_.Now();
  if (seconds <= 0) return;
  const double rate = Rate();
  for (Task& task : tasks_) task.left -= seconds * rate;
  busy_ += seconds * std::min(wanted_, count_);
}

void Cores::Work(double seconds, double cores) {
  if (!(seconds > 0)) return;
  const base::Lock lock(mutex_);
  Pass();
  const auto task = tasks_.insert(tasks_.end(), {seconds, std::min(cores, count_)});
  wanted_ += task->cores;
  if (wanted_ > count_) changed_->NotifyAll();  // the others take longer now
  while (task->left > 0.5e-9) {
    const double rest = task->left / Rate();
    changed_->WaitUntil(
        mutex_, fibers_.Now() + base::Clock::Duration(static_cast<base::Clock::Duration::rep>(std::ceil(rest * 1e9))));
    Pass();
  }
  const bool crowded = wanted_ > count_;
  wanted_ -= task->cores;
  tasks_.erase(task);
  if (crowded) changed_->NotifyAll();
}

}  // namespace freshet::fabric::sim
