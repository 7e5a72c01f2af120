// The sending half of a connection: how an answer comes from the handler and goes out to the client.

#include <algorithm>

#include "serve/http/connection.h"
#include "serve/http/loop.h"
#include "serve/http/response.h"

namespace freshet::serve {
namespace {

constexpr std::size_t kWorthCopying = 32 << 10;  // larger bodies are sent from where they are
constexpr std::size_t kKeptOutput = 256 << 10;   // larger buffers are given back

}  // namespace

void HttpConnection::Send(Response response) {
  answer_ = std::move(response);
  Answered();
}

Stream HttpConnection::OpenStream(std::string content_type) {
  answer_ = {.content_type = std::move(content_type)};
  opened_ = std::make_shared<HttpStream>(weak_from_this(), mailbox_, stream_backlog_bytes_);
  Stream stream(opened_);
  Answered();
  return stream;
}

// From here on the slots belong to the loop's thread.
void HttpConnection::Answered() {
  if (mailbox_->InThread() && dispatching_) {
    answered_ = true;
  } else {
    mailbox_->Post({shared_from_this(), Mail::Kind::kAnswer});
  }
}

void HttpConnection::TakeAnswer() {
  if (opened_) return BeginStream();
  AppendAnswer(std::move(answer_));
  NextRequest();
}

void HttpConnection::AppendAnswer(Response response) {
  if (site_.tokens && !failed_ && response.status == 401 && parser_.head().authorization.empty())
    site_.CountAuthFailure("missing");
  if (site_.tokens && !failed_ && response.status == 403) site_.CountAuthFailure("scope");
  if (site_.stop_at.load() != HttpSite::kNever) keep_alive_ = false;  // its loop may not have heard of it yet
  AppendHead(out_, response, {.keep_alive = keep_alive_, .http_1_0 = http_1_0_, .length = response.body.size()},
             loop_.date());
  if (head_only_ || !HasBody(response.status)) return;
  if (response.body.size() <= kWorthCopying) {
    out_ += response.body;
  } else {
    tail_ = std::move(response.body);
  }
}

void HttpConnection::BeginStream() {
  stream_ = std::move(opened_);
  if (http_1_0_) keep_alive_ = false;  // its end is the connection's
  AppendHead(out_, answer_, {.keep_alive = keep_alive_, .http_1_0 = http_1_0_, .length = std::nullopt}, loop_.date());
  if (head_only_ || draining_) stream_->Abandon();
  BeginPhase(Phase::kStream);
  loop_.Streams(*this);
}

bool HttpConnection::StepStream() {
  if (!Flush()) return false;
  std::string text;
  const HttpStream::State state = stream_->Take(text);
  if (state == HttpStream::State::kTooSlow) {
    site_.CountRejected("slow_reader");
    return Close(), false;
  }
  if (http_1_0_) {
    out_ += text;
  } else if (!text.empty() && !head_only_) {
    AppendChunk(out_, text);
  }
  if (state == HttpStream::State::kOpen) return !text.empty();
  if (!http_1_0_ && !head_only_) out_ += kLastChunk;
  stream_.reset();
  loop_.StreamEnded(*this);
  NextRequest();
  return true;
}

// True when everything has gone out. Otherwise the connection waits for its client, or is closed.
bool HttpConnection::Flush() {
  if (!HasOutput()) return true;
  while (HasOutput()) {
    if (!writable_) return false;
    const std::string_view head = out_, tail = tail_;
    const Moved moved = socket_.Write(sent_ < head.size() ? head.substr(sent_) : tail.substr(sent_ - head.size()));
    if (moved.gone) return Close(), false;
    sent_ += moved.bytes;
    answer_pace_.Move(moved.bytes, loop_.now());
    if (!moved.blocked) continue;
    writable_ = false;
    if (!std::exchange(stalled_, true)) answer_pace_.Begin(loop_.now());
  }
  if (std::exchange(stalled_, false) && phase_ == Phase::kHead) since_ = loop_.now();
  sent_ = 0;
  out_.clear();
  if (out_.capacity() > kKeptOutput) out_.shrink_to_fit();
  tail_ = {};
  return true;
}

}  // namespace freshet::serve
