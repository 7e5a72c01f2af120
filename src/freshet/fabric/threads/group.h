#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "fabric/threads/bell.h"
#include "fabric/threads/threads_fabric.h"

namespace freshet::fabric {

class Mailroom;
class SharedSum;

// What the members of a threads group share: who is there, how it ended if it did, and the bells by which they wake
// each other. Threads: any.
class Group {
 public:
  Group(int size, const base::Clock& clock, ThreadsOptions options);
  ~Group();

  int size() const { return size_; }
  const base::Clock& clock() const { return clock_; }
  int cores() const { return cores_; }
  const ThreadsOptions& options() const { return options_; }
  const std::string& host(int rank) const { return options_.hosts[static_cast<std::size_t>(rank)]; }
  std::string Who(int rank) const;  // "rank 2 (localhost)"

  Bell& bell(int rank) const { return bells_[static_cast<std::size_t>(rank)]; }
  Mailroom& mail(int rank) const { return *mail_[static_cast<std::size_t>(rank)]; }
  SharedSum& sum() const { return *sum_; }

  // A thread more or less that uses the fabric: with more of them than cores, looking is kept short.
  void AddThread(int change) { threads_.fetch_add(change, std::memory_order_relaxed); }
  Patience patience() const;

  bool gone(int rank) const { return gone_[static_cast<std::size_t>(rank)].load(); }
  // Of these, or of all but `rank` where there are none.
  bool AllGone(int rank, std::span<const int> among) const;
  void Leave(int rank);
  // This member is gone; the first reason stays.
  void Lose(Loss loss);
  bool reports() const { return options_.on_loss == OnLoss::kReport; }
  std::vector<Loss> LossesBut(int rank) const;  // all others that are gone, in this order
  Error WhyGone(int rank) const;

  // The end of the group, for every member; the first reason stays. Gives the reason that holds.
  Error Fail(Error why);
  bool failed() const { return failed_.load(); }
  Error failure() const;
  // That `rank` is gone, which mattered while `doing`.
  Error LeftWhile(int rank, const std::string& doing) const;

  // The end of sums in shared memory. It is the group's where it ends with a loss.
  Error FailSums(Error why);
  bool sums_failed() const { return sums_failed_.load(); }
  Error sums_failure() const;

 private:
  void RingAll() const;

  const int size_;
  const base::Clock& clock_;
  ThreadsOptions options_;
  const int cores_;
  const std::unique_ptr<Bell[]> bells_;
  const std::unique_ptr<std::atomic<bool>[]> gone_;
  std::vector<std::unique_ptr<Mailroom>> mail_;
  std::unique_ptr<SharedSum> sum_;
  std::atomic<int> threads_;
  std::atomic<bool> failed_{false};
  std::atomic<bool> sums_failed_{false};  // also when the group has

  mutable base::Mutex mutex_;
  Error failure_ GUARDED_BY(mutex_){Code::kPeerLost, ""};
  Error sums_failure_ GUARDED_BY(mutex_){Code::kPeerLost, ""};
  std::vector<Loss> losses_ GUARDED_BY(mutex_);
};

}  // namespace freshet::fabric
