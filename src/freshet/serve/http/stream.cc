#include "serve/http/stream.h"

namespace freshet::serve {

HttpStream::HttpStream(std::weak_ptr<HttpConnection> connection, std::shared_ptr<HttpMailbox> mailbox,
                       std::size_t backlog_bytes)
    : mailbox_(std::move(mailbox)), backlog_bytes_(backlog_bytes), connection_(std::move(connection)) {}

bool HttpStream::Write(std::string_view text) {
  const base::Lock lock(mutex_);
  if (state_ != State::kOpen) return false;
  if (text.empty()) return !connection_.expired();
  if (backlog_.size() + text.size() > backlog_bytes_) {
    state_ = State::kTooSlow;
    backlog_.clear();
  } else {
    backlog_ += text;
  }
  return Notify() && state_ == State::kOpen;
}

void HttpStream::Close() {
  const base::Lock lock(mutex_);
  if (state_ != State::kOpen) return;
  state_ = State::kEnded;
  Notify();
}

HttpStream::State HttpStream::Take(std::string& text) {
  text.clear();
  const base::Lock lock(mutex_);
  notified_ = false;
  text.swap(backlog_);
  return state_;
}

void HttpStream::Abandon() {
  const base::Lock lock(mutex_);
  state_ = State::kAbandoned;
}

// False when there is nobody left to notify.
bool HttpStream::Notify() {
  std::shared_ptr<HttpConnection> connection = connection_.lock();
  if (connection == nullptr) return false;
  if (!std::exchange(notified_, true)) mailbox_->Post({std::move(connection), Mail::Kind::kStream});
  return true;
}

}  // namespace freshet::serve
