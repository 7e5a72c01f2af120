#include "serve/http_connection.h"

#include <openssl/crypto.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cstring>

#include "serve/http_loop.h"

namespace freshet::serve {
namespace {

constexpr int kStepsPerTurn = 64;                 // then other connections have theirs
constexpr std::size_t kWindowBytes = 8 << 10;     // room behind a head for what follows it
constexpr std::size_t kProgressBytes = 64 << 10;  // so much of a body counts as a sign of life
constexpr auto kLingerTime = std::chrono::seconds(2);

}  // namespace

HttpConnection::HttpConnection(Arrival arrival, HttpLoop& loop, HttpSite& site, std::shared_ptr<HttpMailbox> mailbox)
    : loop_(loop),
      site_(site),
      limits_(site.options.limits),
      mailbox_(std::move(mailbox)),
      peer_(std::move(arrival.peer)),
      local_(std::move(arrival.local)),
      in_bytes_(limits_.header_bytes + kWindowBytes),
      socket_(arrival.descriptor, site.tls ? site.tls->Accept(arrival.descriptor) : nullptr),
      since_(loop.now()),
      in_(std::make_unique_for_overwrite<char[]>(in_bytes_)),
      parser_(limits_.header_bytes, static_cast<std::size_t>(limits_.header_fields)),
      chunks_(limits_.body_chunks),
      body_(site.bodies),
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
    if (!TooSlow(stalled_since_, stalled_sent_)) return;
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
      if (!TooSlow(since_, body_.size())) return;
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
    case Phase::kClosing:
    case Phase::kClosed:
      return;
  }
  Advance();
}

bool HttpConnection::TooSlow(base::Clock::Duration since, std::size_t bytes) const {
  const double earned = static_cast<double>(bytes) / static_cast<double>(limits_.rate_bytes_per_s);
  return base::Seconds(loop_.now() - since - limits_.rate_allowance) > earned;
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

void HttpConnection::Close() {
  if (phase_ == Phase::kClosed) return;
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

bool HttpConnection::StepHead() {
  // The answers of requests that came together go out together, unless they become many.
  if (out_.size() > HttpBody::kKept || !tail_.empty())
    if (!Flush()) return false;
  switch (parser_.Parse(Unread())) {
    case Parsed::kBad:
      return Fail(parser_.mistake());
    case Parsed::kDone:
      return AcceptHead();
    case Parsed::kMore:
      break;
  }
  if (!Flush() || !readable_) return false;
  MoveToFront();
  const Moved moved = Receive({in_.get() + end_, in_bytes_ - end_});
  if (moved.bytes == 0) return false;
  if (end_ == 0 && requests_ > 0) since_ = loop_.now();  // its time begins with its first byte
  end_ += moved.bytes;
  return true;
}

// Makes room behind the request that is being read.
void HttpConnection::MoveToFront() {
  if (begin_ == 0) return;
  std::memmove(in_.get(), in_.get() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  parser_.Reset();  // its views have moved
}

bool HttpConnection::AcceptHead() {
  const Head& head = parser_.head();
  http_1_0_ = head.http_1_0;
  keep_alive_ = head.keep_alive && !draining_;
  head_only_ = head.method == "HEAD";
  if (!CheckSender(head) || !ResolveScope(head) || !CheckLength(head.content_length)) return true;
  BeginBody(head);
  return true;
}

// Whether our own clients can have sent this, and not a page in somebody's browser.
bool HttpConnection::CheckSender(const Head& head) {
  const bool may_lack_host = head.http_1_0 && head.host.empty();
  if (!may_lack_host && (known_host_.empty() || head.host != known_host_)) {
    if (!site_.hosts.AllowsHost(head.host, local_))
      return Fail(421, "host", "this Host is not served here; the server's operator can allow it"), false;
    known_host_ = head.host;
  }
  const bool reads = head.method == "GET" || head.method == "HEAD";
  if (!reads && !head.origin.empty() && !HostRules::SameOrigin(head.origin, head.host))
    return Fail(403, "origin", "pages of another origin may not send this"), false;
  return true;
}

bool HttpConnection::ResolveScope(const Head& head) {
  request_.scope = Scope::kAdmin;
  if (!site_.tokens) return true;
  const std::string_view given = head.authorization;
  const std::uint64_t generation = site_.tokens->generation();
  const bool known = known_generation_ == generation && given.size() == known_authorization_.size() &&
                     CRYPTO_memcmp(given.data(), known_authorization_.data(), given.size()) == 0;
  if (!known) {
    const Tokens::Verdict verdict = site_.tokens->Check(given, peer_);
    if (verdict.limited) return Fail(429, "token_failures", "too many wrong tokens from this address"), false;
    known_scope_ = verdict.scope;
    known_generation_ = verdict.scope != Scope::kNone ? generation : 0;
    known_authorization_ = verdict.scope != Scope::kNone ? given : std::string_view();
  }
  request_.scope = known_scope_;
  return true;
}

bool HttpConnection::CheckLength(std::uint64_t bytes) {
  if (bytes > limits_.body_bytes) return Fail(413, "body_size", "the body is too large"), false;
  if (request_.scope == Scope::kNone && bytes > limits_.anonymous_body_bytes)
    return Fail(401, "body_size", "a body of this size needs a valid token"), false;
  return true;
}

void HttpConnection::BeginBody(const Head& head) {
  if (head.chunked && begin_ > 0) {
    MoveToFront();
    CHECK(parser_.Parse(Unread()) == Parsed::kDone);
  }
  next_ = begin_ + parser_.size();
  const std::string_view rest(in_.get() + next_, end_ - next_);
  if (!head.chunked && head.content_length <= rest.size()) {
    next_ += head.content_length;
    return Dispatch(rest.substr(0, head.content_length));
  }
  if (head.expects_continue && rest.empty()) out_ += "HTTP/1.1 100 Continue\r\n\r\n";
  BeginPhase(Phase::kBody);
  body_mark_ = 0;
  if (head.chunked) return;
  end_ = next_;
  if (!body_.Append(rest)) FailForRoom();
}

bool HttpConnection::StepBody() {
  const std::size_t length = parser_.head().content_length;
  if (body_.size() == length) return Dispatch(body_.view()), true;
  if (!Flush() || !readable_) return false;
  const std::span<char> room = body_.Room(length - body_.size());
  if (room.empty()) return FailForRoom();
  const Moved moved = Receive(room);
  body_.Add(moved.bytes);
  NoteProgress();
  return moved.bytes > 0;
}

// Chunks are read to behind the head, taken apart from next_ on, and put together in body_.
bool HttpConnection::StepChunkedBody() {
  std::string_view raw(in_.get() + next_, end_ - next_), piece;
  const Parsed parsed = chunks_.Next(raw, piece);
  next_ = end_ - raw.size();
  if (parsed == Parsed::kBad) return Fail(chunks_.mistake());
  if (!CheckLength(body_.size() + piece.size())) return true;
  if (!body_.Append(piece)) return FailForRoom();
  if (parsed == Parsed::kDone) return Dispatch(body_.view()), true;
  NoteProgress();
  if (next_ < end_) return true;
  next_ = end_ = parser_.size();
  if (!Flush() || !readable_) return false;
  const Moved moved = Receive({in_.get() + end_, in_bytes_ - end_});
  end_ += moved.bytes;
  return moved.bytes > 0;
}

void HttpConnection::NoteProgress() {
  if (body_.size() - body_mark_ < kProgressBytes) return;
  body_mark_ = body_.size();
  loop_.Waits(*this);
}

bool HttpConnection::FailForRoom() {
  return Fail(503, "bodies_size", "the server holds as many large bodies as it may; try again");
}

void HttpConnection::Dispatch(std::string_view body) {
  const Head& head = parser_.head();
  request_.method = head.method;
  request_.path = head.path;
  request_.query = head.query;
  request_.content_type = head.content_type;
  request_.headers = head.fields;
  request_.body = body;
  BeginPhase(Phase::kHandler);
  dispatching_ = true;
  site_.handler(Exchange(shared_from_this()));
  dispatching_ = false;
  if (std::exchange(answered_, false)) return TakeAnswer();
  loop_.Works(*this);
}

void HttpConnection::BeginPhase(Phase phase) {
  phase_ = phase;
  since_ = loop_.now();
}

void HttpConnection::NextRequest() {
  ++requests_;
  if (!keep_alive_) return BeginPhase(Phase::kClosing);
  begin_ = next_;
  if (begin_ == end_) begin_ = end_ = 0;
  parser_.Reset();
  chunks_.Reset();
  body_.Clear();
  BeginPhase(Phase::kHead);
  loop_.Waits(*this);
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
