#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "serve/http/acceptor.h"

namespace freshet::serve {

class HttpConnection;

// A connection to look after: its answer is there, or its stream has something to say.
struct Mail {
  enum class Kind { kAnswer, kStream };
  std::shared_ptr<HttpConnection> to;
  Kind kind = Kind::kAnswer;
};

// How other threads reach an I/O loop. Belongs to the thread that made it, and outlives the loop for those who still
// hold one of its connections: mail to a closed box is dropped.
//
// Threads: any, except where said. Blocking: never.
class HttpMailbox {
 public:
  HttpMailbox();
  ~HttpMailbox();

  bool InThread() const { return std::this_thread::get_id() == thread_; }
  int descriptor() const { return descriptor_; }  // readable when there is mail; below zero when it could not be made

  void Post(Mail mail);
  bool Post(Arrival arrival);  // false when the box is closed: the descriptor stays the caller's
  void Wake();

  // By the loop.
  void Take(std::vector<Mail>& mail, std::vector<Arrival>& arrivals);
  std::vector<Arrival> Close();  // those who came too late

  // For whoever chooses a loop for a new connection.
  std::atomic<int> connections{0};
  static constexpr auto kNone = std::numeric_limits<base::Clock::Duration::rep>::max();
  std::atomic<base::Clock::Duration::rep> longest_wait_since{kNone};
  std::atomic<base::Clock::Duration::rep> oldest_stream_since{kNone};

 private:
  void Signal() REQUIRES(mutex_);

  const std::thread::id thread_;
  const int descriptor_;

  base::Mutex mutex_;
  bool closed_ GUARDED_BY(mutex_) = false;
  bool signalled_ GUARDED_BY(mutex_) = false;  // the descriptor is readable, or will be in a moment
  std::vector<Mail> mail_ GUARDED_BY(mutex_);
  std::vector<Arrival> arrivals_ GUARDED_BY(mutex_);
};

// The mailboxes of the loops that are running.
//
// Threads: any.
class HttpMailboxes {
 public:
  void Add(std::shared_ptr<HttpMailbox> box);
  void Remove(const std::shared_ptr<HttpMailbox>& box);
  void WakeAll();
  std::shared_ptr<HttpMailbox> First() const;           // the same one as long as it runs; none when no loop does
  std::shared_ptr<HttpMailbox> LeastLoaded() const;     // none when no loop runs
  std::shared_ptr<HttpMailbox> LongestWaiting() const;  // where the longest wait for a client is; none when none waits
  std::shared_ptr<HttpMailbox> OldestStream() const;    // where that is; none when there is none

 private:
  using Since = std::atomic<base::Clock::Duration::rep> HttpMailbox::*;
  std::shared_ptr<HttpMailbox> Earliest(Since since) const;

  mutable base::Mutex mutex_;
  std::vector<std::shared_ptr<HttpMailbox>> boxes_ GUARDED_BY(mutex_);
};

}  // namespace freshet::serve
