#include "serve/http/mailbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

namespace freshet::serve {

HttpMailbox::HttpMailbox()
    : thread_(std::this_thread::get_id()), descriptor_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

HttpMailbox::~HttpMailbox() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void HttpMailbox::Post(Mail mail) {
  const base::Lock lock(mutex_);
  if (closed_) return;
  mail_.push_back(std::move(mail));
  Signal();
}

bool HttpMailbox::Post(Arrival arrival) {
  const base::Lock lock(mutex_);
  if (closed_) return false;
  arrivals_.push_back(std::move(arrival));
  Signal();
  return true;
}

void HttpMailbox::Wake() {
  const base::Lock lock(mutex_);
  Signal();
}

void HttpMailbox::Signal() {
  if (std::exchange(signalled_, true)) return;
  const std::uint64_t one = 1;
  // It can only fail when the counter is full, and then the loop wakes all the same.
  [[maybe_unused]] const ssize_t written = ::write(descriptor_, &one, sizeof one);
}

void HttpMailbox::Take(std::vector<Mail>& mail, std::vector<Arrival>& arrivals) {
  mail.clear();
  arrivals.clear();
  const base::Lock lock(mutex_);
  if (!std::exchange(signalled_, false)) return;
  std::uint64_t count;
  [[maybe_unused]] const ssize_t got = ::read(descriptor_, &count, sizeof count);
  mail.swap(mail_);
  arrivals.swap(arrivals_);
}

std::vector<Arrival> HttpMailbox::Close() {
  std::vector<Mail> dropped;  // after the lock: the last holder of a connection may be here
  const base::Lock lock(mutex_);
  closed_ = true;
  dropped.swap(mail_);
  return std::move(arrivals_);
}

void HttpMailboxes::Add(std::shared_ptr<HttpMailbox> box) {
  const base::Lock lock(mutex_);
  boxes_.push_back(std::move(box));
}

void HttpMailboxes::Remove(const std::shared_ptr<HttpMailbox>& box) {
  const base::Lock lock(mutex_);
  std::erase(boxes_, box);
}

void HttpMailboxes::WakeAll() {
  const base::Lock lock(mutex_);
  for (const auto& box : boxes_) box->Wake();
}

std::shared_ptr<HttpMailbox> HttpMailboxes::First() const {
  const base::Lock lock(mutex_);
  return boxes_.empty() ? nullptr : boxes_.front();
}

std::shared_ptr<HttpMailbox> HttpMailboxes::LeastLoaded() const {
  const base::Lock lock(mutex_);
  const auto least = std::min_element(boxes_.begin(), boxes_.end(),
                                      [](const auto& a, const auto& b) { return a->connections < b->connections; });
  return least == boxes_.end() ? nullptr : *least;
}

std::shared_ptr<HttpMailbox> HttpMailboxes::LongestWaiting() const {
  return Earliest(&HttpMailbox::longest_wait_since);
}

std::shared_ptr<HttpMailbox> HttpMailboxes::OldestStream() const { return Earliest(&HttpMailbox::oldest_stream_since); }

std::shared_ptr<HttpMailbox> HttpMailboxes::Earliest(Since since) const {
  const base::Lock lock(mutex_);
  const auto earliest = std::min_element(boxes_.begin(), boxes_.end(), [since](const auto& a, const auto& b) {
    return (a.get()->*since).load() < (b.get()->*since).load();
  });
  const bool none = earliest == boxes_.end() || (earliest->get()->*since).load() == HttpMailbox::kNone;
  return none ? nullptr : *earliest;
}

}  // namespace freshet::serve
