// The reading half of a connection: how a request is put together, checked and handed to the handler.

#include <openssl/crypto.h>

#include <algorithm>
#include <cstring>

#include "serve/http/connection.h"
#include "serve/http/gzip.h"
#include "serve/http/loop.h"

namespace freshet::serve {
namespace {

constexpr std::size_t kProgressBytes = 64 << 10;  // so much of a body counts as a sign of life

}  // namespace

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
  if (!CheckSender(head) || !ResolveScope(head) || !CheckSeat(head) || !CheckLength(head.content_length)) return true;
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
    Tokens::Verdict verdict = site_.tokens->Check(given, peer_);
    if (verdict.limited) return Fail(429, "token_failures", "too many wrong tokens from this address"), false;
    known_scope_ = verdict.scope;
    known_name_ = std::move(verdict.name);
    known_generation_ = verdict.scope != Scope::kNone ? generation : 0;
    known_authorization_ = verdict.scope != Scope::kNone ? given : std::string_view();
  }
  request_.scope = known_scope_;
  request_.token_name = known_name_;
  return true;
}

// Whether the token of this request allows what it did when it was asked: tokens may have changed since.
bool HttpConnection::TokenStillGood() {
  if (!site_.tokens || request_.scope == Scope::kNone) return true;
  const std::uint64_t generation = site_.tokens->generation();
  if (known_generation_ == generation) return true;
  if (site_.tokens->ScopeOf(known_authorization_) < request_.scope) return false;
  known_generation_ = generation;
  return true;
}

// Whether this may be asked from where it sits. One answer, and the seat is free again.
bool HttpConnection::CheckSeat(const Head& head) {
  if (!reserved_) return true;
  keep_alive_ = false;
  const auto& paths = site_.options.reserved_paths;
  if (std::find(paths.begin(), paths.end(), head.path) != paths.end()) return true;
  if (site_.tokens && request_.scope == Scope::kAdmin) return true;
  return Fail(503, "full", "the server has as many connections as it may"), false;
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
  body_pace_.Begin(loop_.now());
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
  body_pace_.Move(moved.bytes, loop_.now());
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
  body_pace_.Move(moved.bytes, loop_.now());
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

// A body that came compressed, as it was meant. It may be as large as one that came plain.
bool HttpConnection::Unpack(std::string_view& body) {
  const std::size_t most =
      request_.scope == Scope::kNone ? std::min(limits_.anonymous_body_bytes, limits_.body_bytes) : limits_.body_bytes;
  switch (Gunzip(body, most, unpacked_)) {
    case Unpacked::kDone:
      body = unpacked_.view();
      return true;
    case Unpacked::kBad:
      return Fail(400, "encoding", "the body is not whole gzip, which Content-Encoding says it is"), false;
    case Unpacked::kTooLarge:
      return CheckLength(most + 1);  // says so
    case Unpacked::kNoRoom:
      return FailForRoom(), false;
  }
  return false;
}

void HttpConnection::Dispatch(std::string_view body) {
  const Head& head = parser_.head();
  if (head.gzip && !Unpack(body)) return;
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

void HttpConnection::NextRequest() {
  ++requests_;
  if (!keep_alive_) return BeginPhase(Phase::kClosing);
  begin_ = next_;
  if (begin_ == end_) begin_ = end_ = 0;
  parser_.Reset();
  chunks_.Reset();
  body_.Clear();
  unpacked_.Clear();
  BeginPhase(Phase::kHead);
  loop_.Waits(*this);
}

Moved HttpConnection::Receive(std::span<char> into) {
  const Moved moved = socket_.Read(into);
  // When the other side has ended, there is always one more thing to read: its end.
  if (moved.blocked && (moved.bytes == 0 || !peer_ended_)) readable_ = false;
  if (moved.gone) Close();
  return moved;
}

}  // namespace freshet::serve
