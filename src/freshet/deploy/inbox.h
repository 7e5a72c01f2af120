#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "base/bell.h"
#include "base/mutex.h"
#include "deploy/request.h"

namespace freshet::deploy {

// What was posted to a deployment and waits for its writer: requests, which bring rows, and commands. Requests are
// taken in the order they came, and so are commands; a command is taken only once every request that was posted before
// it has been. Rows are bounded, commands and feedback are not.
//
// Threads:   Post from any; Take… and Written by one at a time, the writer's. Ownership: borrows the bell.
// Blocking:  never.
// Failure:   kBusy, by the request's `done`, when more rows would wait than may. What is left when it is destroyed is
//            dropped and not answered, as by a crash.
class Inbox {
 public:
  using Command = std::function<void()>;

  // `most_rows`: posted and not yet written; the bell is rung with everything that is posted.
  Inbox(std::size_t most_rows, base::Bell& bell) : most_rows_(most_rows), bell_(bell) {}

  void Post(Request request) EXCLUDES(mutex_);
  void Post(Command command) EXCLUDES(mutex_);

  // The requests of a round: one, or as many as are small together. Their rows wait on, until Written.
  std::vector<Request> TakeRequests() EXCLUDES(mutex_);
  // What was taken is in the log, or was refused.
  void Written() EXCLUDES(mutex_);
  // The commands whose turn has come.
  std::vector<Command> TakeCommands() EXCLUDES(mutex_);

 private:
  const std::size_t most_rows_;
  base::Bell& bell_;

  base::Mutex mutex_;
  std::deque<Request> requests_ GUARDED_BY(mutex_);
  std::uint64_t requests_posted_ GUARDED_BY(mutex_) = 0;
  std::uint64_t requests_taken_ GUARDED_BY(mutex_) = 0;
  std::deque<std::pair<std::uint64_t, Command>> commands_ GUARDED_BY(mutex_);  // each after so many of the requests
  std::uint64_t rows_waiting_ GUARDED_BY(mutex_) = 0;                          // posted and not yet written
  std::uint64_t rows_taken_ GUARDED_BY(mutex_) = 0;                            // of those
};

}  // namespace freshet::deploy
