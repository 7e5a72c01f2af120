#include "deploy/inbox.h"

namespace freshet::deploy {

void Inbox::Post(Request request) {
  const std::size_t rows = request.rows.size();
  {
    base::Lock lock(mutex_);
    if (rows > 0 && rows_waiting_ + rows > most_rows_ + 1) {
      lock.unlock();
      if (request.done)  // who predicted is not told: feedback will miss it
        request.done(
            Error{Code::kBusy, "too many observations are waiting to be written; send them again in a moment"});
      return;
    }
    rows_waiting_ += rows;
    requests_.push_back(std::move(request));
    ++requests_posted_;
  }
  bell_.Ring();
}

void Inbox::Post(Command command) {
  {
    const base::Lock lock(mutex_);
    commands_.emplace_back(requests_posted_, std::move(command));
  }
  bell_.Ring();
}

std::vector<Request> Inbox::TakeRequests() {
  constexpr std::uint64_t kMostRows = 8192, kMostBytes = 16 << 20;
  std::vector<Request> taken;
  std::uint64_t rows = 0, bytes = 0;
  const base::Lock lock(mutex_);
  while (!requests_.empty()) {
    const Request& next = requests_.front();
    rows += next.rows.size() + next.labels.size();
    bytes += sizeof(float) * (next.rows.dense.size() + 2 * next.rows.indices.size());
    if (!taken.empty() && (rows > kMostRows || bytes > kMostBytes)) break;
    rows_taken_ += next.rows.size();
    taken.push_back(std::move(requests_.front()));
    requests_.pop_front();
    ++requests_taken_;
  }
  return taken;
}

void Inbox::Written() {
  const base::Lock lock(mutex_);
  rows_waiting_ -= std::exchange(rows_taken_, 0);
}

std::vector<Inbox::Command> Inbox::TakeCommands() {
  std::vector<Command> taken;
  const base::Lock lock(mutex_);
  for (; !commands_.empty() && commands_.front().first <= requests_taken_; commands_.pop_front())
    taken.push_back(std::move(commands_.front().second));
  return taken;
}

}  // namespace freshet::deploy
