#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

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
  bool AllOthersGone(int rank) const;
  void Leave(int rank);

  // The end of the group, for every member; the first reason stays. Gives the reason that holds.
  Error Fail(Error why);
  bool failed() const { return failed_.load(); }
  Error failure() const;
  // That `rank` has left while `doing`.
  Error FailForLeaving(int rank, const std::string& doing);

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

  mutable std::mutex mutex_;  // guards failure_
  Error failure_{Code::kPeerLost, ""};
};

}  // namespace freshet::fabric
