#include "launch_frozen.h"

#include <algorithm>
#include <csignal>

namespace freshet::cli {
namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(200);
constexpr auto kLongestStep = std::chrono::milliseconds(500);  // more has passed: we have not run ourselves
constexpr int kWakes = 5;                                      // a second's worth

}  // namespace

bool FrozenWorkers::Look() {
  const base::Clock::Duration now = clock_.Now();
  const bool first = last_look_ < base::Clock::Duration::zero();
  if (!first && now - last_look_ < kLookEvery) return false;
  const base::Clock::Duration step = first ? base::Clock::Duration::zero() : now - last_look_;
  last_look_ = now;
  frozen_.clear();
  bool all = true;
  const base::Clock::Duration passed = std::min<base::Clock::Duration>(step, kLongestStep);
  for (const auto& worker : workers_) {
    if (!worker->running()) continue;
    if (worker->Frozen()) {
      frozen_.push_back(worker.get());
      frozen_for_[worker.get()] += passed;
    } else {
      all = false;
      frozen_for_.erase(worker.get());
    }
  }
  all_for_ = all && !frozen_.empty() ? all_for_ + passed : base::Clock::Duration::zero();
  return true;
}

void FrozenWorkers::KillAfter(base::Clock::Duration limit) {
  for (Worker* const worker : frozen_)
    if (frozen_for_[worker] >= limit) worker->Kill();
}

void FrozenWorkers::WakeToEnd() {
  for (Worker* const worker : frozen_) {
    if (std::find(woken_.begin(), woken_.end(), worker) == woken_.end()) woken_.push_back(worker);
    if (!worker->asked()) worker->Signal(SIGTERM);
    if (worker->Wake() > kWakes) worker->Signal(SIGKILL);
  }
}

}  // namespace freshet::cli
