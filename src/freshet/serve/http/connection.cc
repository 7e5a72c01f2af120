#include "serve/http/connection.h"

#include <sys/epoll.h>

#include "serve/http/loop.h"

namespace freshet::serve {
namespace {

constexpr int kStepsPerTurn = 64;              // then other connections have theirs
constexpr std::size_t kWindowBytes = 8 << 10;  // room behind a head for what follows it
constexpr auto kLingerTime = std::chrono::seconds(2);

}  // namespace

HttpConnection::HttpConnection(Arrival arrival, SslSession session, HttpLoop& loop, HttpSite& site,
                               std::shared_ptr<HttpMailbox> mailbox)
    : loop_(loop),
      site_(site),
      limits_(site.options.limits),
      mailbox_(std::move(mailbox)),
      peer_(std::move(arrival.peer)),
      local_(std::move(arrival.local)),
      in_bytes_(limits_.header_bytes + kWindowBytes),
      reserved_(arrival.reserved),
      socket_(arrival.descriptor, std::move(session)),
      since_(loop.now()),
      in_(std::make_unique_for_overwrite<char[]>(in_bytes_)),
      parser_(limits_.header_bytes, static_cast<std::size_t>(limits_.header_fields)),
      chunks_(limits_.body_chunks),
      body_(site.bodies),
      body_pace_({limits_.rate_bytes_per_s, limits_.rate_window, limits_.body_pause}),
      unpacked_(site.bodies),
      answer_pace_({limits_.rate_bytes_per_s, limits_.rate_window, limits_.rate_window}),
      stream_backlog_bytes_(limits_.stream_backlog_bytes) {
  request_.peer = peer_;
}

void HttpConnection::OnReady(std::uint32_t epoll_events) {
  if ((epoll_events & (EPOLLERR | EPOLLHUP)) != 0) return Close();
  if ((epoll_events & EPOLLRDHUP) != 0) peer_ended_ = readable_ = true;
  if ((epoll_events & EPOLLIN) != 0) readable_ = true;
  if ((epoll_events & EPOLLOUT) != 0) writable_ = true;
  if (socket_.tls()) readable_ = writable_ = true;  // a session may have to read in order to write
  if (peer_ended_ && phase_ == Phase::kStream) return Close();
  Advance();
}

void HttpConnection::OnMail(Mail::Kind kind) {
  if (kind == Mail::Kind::kAnswer) {
    if (phase_ != Phase::kHandler) {  // too late
      if (opened_) opened_->Abandon();
      return;
    }
    TakeAnswer();
  }
  Advance();
}

void HttpConnection::OnTick() {
  const auto now = loop_.now();
  if (stalled_) {
    if (!answer_pace_.TooSlow(now)) return;
    site_.CountRejected("slow_reader");
    return Close();
  }
  switch (phase_) {
    case Phase::kHead: {
      const bool begun = begin_ < end_;
      if (now - since_ < (begun || requests_ == 0 ? limits_.header_timeout : limits_.idle_timeout)) return;
      if (!begun) return Close();
      Fail(408, "slow_header", "the header took too long");
      break;
    }
    case Phase::kBody:
      if (!body_pace_.TooSlow(now)) return;
      Fail(408, "slow_body", "the body came too slowly");
      break;
    case Phase::kHandler:
      if (now - since_ < limits_.answer_timeout) return;
      Fail(504, "answer_timeout", "the answer took too long");
      break;
    case Phase::kLinger:
      if (now - since_ >= kLingerTime) Close();
      return;
    case Phase::kStream:
      if (!TokenStillGood()) EndStream();
      return;
    case Phase::kClosing:
    case Phase::kClosed:
      return;
  }
  Advance();
}

void HttpConnection::Drain() {
  draining_ = true;
  keep_alive_ = false;
  if (stream_) stream_->Abandon();
  Advance();
  if (phase_ != Phase::kHead || begin_ < end_) return;
  BeginPhase(Phase::kClosing);
  Advance();
}

// Its client is told the end, as far as that needs no waiting.
void HttpConnection::EndStream() {
  keep_alive_ = false;
  stream_->Abandon();
  Advance();
  Close();
}

void HttpConnection::Close() {
  if (phase_ == Phase::kClosed) return;
  if (phase_ == Phase::kStream) loop_.StreamEnded(*this);
  phase_ = Phase::kClosed;
  if (stream_) stream_->Abandon();
  loop_.Leaves(*this);
  socket_.Close();
}

void HttpConnection::Advance() {
  for (int step = 0; step < kStepsPerTurn; ++step)
    if (!Step()) return;
  loop_.Again(*this);
}

bool HttpConnection::Step() {
  switch (phase_) {
    case Phase::kHead:
      return StepHead();
    case Phase::kBody:
      return parser_.head().chunked ? StepChunkedBody() : StepBody();
    case Phase::kHandler:
      Flush();
      return false;
    case Phase::kStream:
      return StepStream();
    case Phase::kClosing:
      return StepClosing();
    case Phase::kLinger:
      return StepLinger();
    case Phase::kClosed:
      return false;
  }
  return false;
}

void HttpConnection::BeginPhase(Phase phase) {
  phase_ = phase;
  since_ = loop_.now();
}

bool HttpConnection::Fail(const Mistake& mistake) {
  site_.CountBadInput(mistake.reason);
  Response response = ErrorResponse(mistake.status, mistake.text);
  if (mistake.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (mistake.status == 405) response.headers.emplace_back("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE");
  if (mistake.status == 429 || mistake.status == 503) response.headers.emplace_back("Retry-After", "1");
  keep_alive_ = false;
  failed_ = true;
  AppendAnswer(std::move(response));
  BeginPhase(Phase::kClosing);
  loop_.Waits(*this);
  return true;
}

bool HttpConnection::StepClosing() {
  if (!Flush()) return false;
  if (!failed_) return Close(), false;
  socket_.EndWriting();
  BeginPhase(Phase::kLinger);
  return true;
}

bool HttpConnection::StepLinger() {
  char dropped[4096];
  if (!readable_) return false;
  return Receive(dropped).bytes > 0;
}

}  // namespace freshet::serve
