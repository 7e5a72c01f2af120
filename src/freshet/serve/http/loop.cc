#include "serve/http/loop.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "serve/http/response.h"

namespace freshet::serve {
namespace {

constexpr std::chrono::milliseconds kTick{100};  // how exactly limits on time are kept
constexpr std::chrono::milliseconds kIdle{1'000};
constexpr int kAcceptsPerTurn = 16;

// Whether something of the client is there that we have not read yet.
bool HasSent(const HttpConnection& connection) {
  int bytes = 0;
  return ::ioctl(connection.descriptor(), FIONREAD, &bytes) == 0 && bytes > 0;
}

}  // namespace

Result<std::unique_ptr<HttpLoop>> HttpLoop::Make(HttpSite& site, HttpAcceptor* acceptor) {
  const int poller = ::epoll_create1(EPOLL_CLOEXEC);
  if (poller < 0) return Error{Code::kIo, "cannot make an epoll descriptor: too many files are open"};
  std::unique_ptr<HttpLoop> loop(new HttpLoop(site, acceptor, poller));
  if (!loop->Watch(loop->mailbox_->descriptor(), EPOLLIN, loop->mailbox_.get()))
    return Error{Code::kIo, "cannot make an event descriptor: too many files are open"};
  site.loops.Add(loop->mailbox_);
  return loop;
}

HttpLoop::HttpLoop(HttpSite& site, HttpAcceptor* acceptor, int poller)
    : site_(site),
      acceptor_(acceptor),
      poller_(poller),
      mailbox_(std::make_shared<HttpMailbox>()),
      warned_(site.clock.Now() - std::chrono::hours(1)) {
  ReadClock();
}

HttpLoop::~HttpLoop() {
  site_.loops.Remove(mailbox_);
  for (const Arrival& late : mailbox_->Close()) {
    if (!late.replaces) site_.gate.Leave(late.peer);
    TurnAway(late, 503, "stopping");
  }
  for (const auto& connection : All()) connection->Close();
  ::close(poller_);
}

bool HttpLoop::Watch(int descriptor, std::uint32_t events, void* what) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = what;
  return ::epoll_ctl(poller_, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

void HttpLoop::Run() {
  std::chrono::milliseconds wait{0};
  while (Turn(wait)) wait = Empty() ? kIdle : kTick;
}

bool HttpLoop::Turn(std::chrono::milliseconds wait) {
  std::array<epoll_event, 128> events;
  if (!again_.empty()) wait = wait.zero();
  const int count = ::epoll_wait(poller_, events.data(), events.size(), static_cast<int>(wait.count()));
  CHECK(count >= 0 || errno == EINTR);
  ReadClock();
  std::vector<std::shared_ptr<HttpConnection>> again;
  again.swap(again_);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.ptr == mailbox_.get()) {
      TakeMail();
    } else if (event.data.ptr == this) {
      AcceptSome();
    } else {
      static_cast<HttpConnection*>(event.data.ptr)->OnReady(event.events);
    }
  }
  for (const auto& connection : again) {
    connection->seat.again = false;
    connection->Advance();
  }
  if (now_ >= next_tick_) Tick();
  if (site_.streams > site_.options.limits.streams) EndStreamsBeyond();
  const base::Clock::Duration stop_at(site_.stop_at.load());
  if (!stopping_ && stop_at.count() != HttpSite::kNever) Stop();
  if (now_ >= stop_at)
    for (const auto& connection : All()) connection->Close();
  closed_.clear();
  return !stopping_ || !Empty();
}

void HttpLoop::ReadClock() {
  now_ = site_.clock.Now();
  if (now_ < next_date_) return;
  const auto wall = site_.clock.Wall();
  date_ = HttpDate(wall);
  next_date_ = now_ + std::chrono::seconds(1) - wall % std::chrono::seconds(1);
}

void HttpLoop::Tick() {
  next_tick_ = now_ + kTick;
  if (site_.tokens) site_.tokens->Refresh();
  for (const auto& connection : All()) connection->OnTick();
  // Also after an accept that failed: it is tried again now.
  if (!accepting_ && acceptor_ != nullptr && !stopping_)
    accepting_ = Watch(acceptor_->descriptor(), EPOLLIN | EPOLLEXCLUSIVE, this);
}

void HttpLoop::Stop() {
  stopping_ = true;
  if (std::exchange(accepting_, false)) ::epoll_ctl(poller_, EPOLL_CTL_DEL, acceptor_->descriptor(), nullptr);
  for (const auto& connection : All()) connection->Drain();
}

void HttpLoop::AcceptSome() {
  for (int i = 0; i < kAcceptsPerTurn && accepting_; ++i) {
    Arrival arrival;
    switch (acceptor_->Accept(arrival)) {
      case HttpAcceptor::Outcome::kArrived:
        Place(std::move(arrival));
        break;
      case HttpAcceptor::Outcome::kNobody:
        return;
      case HttpAcceptor::Outcome::kNoDescriptors:
        site_.CountRejected("descriptors");
        [[fallthrough]];
      case HttpAcceptor::Outcome::kFailed:
        if (now_ - warned_ > std::chrono::seconds(10))
          site_.log.Warn("connections_refused", "why", "too many files are open, or memory is short");
        warned_ = now_;
        accepting_ = false;
        ::epoll_ctl(poller_, EPOLL_CTL_DEL, acceptor_->descriptor(), nullptr);
        return;
    }
  }
}

// Finds a loop for a connection: the one that has fewest, or the one that has one to spare.
void HttpLoop::Place(Arrival arrival) {
  std::shared_ptr<HttpMailbox> box;
  switch (site_.gate.Enter(arrival.peer)) {
    case HttpGate::Verdict::kTooManyFromAddress:
      return TurnAway(arrival, 429, "address_limit");
    case HttpGate::Verdict::kFull:
      box = site_.loops.LongestWaiting();
      if (box == nullptr) box = site_.loops.OldestStream();
      arrival.replaces = true;
      if (box == nullptr) box = mailbox_;  // nobody can go; perhaps there is a reserved seat
      break;
    case HttpGate::Verdict::kWelcome:
      box = site_.loops.LeastLoaded();
      break;
  }
  CHECK(box != nullptr);  // we run
  if (!arrival.replaces) ++box->connections;
  if (box == mailbox_) return Adopt(std::move(arrival));
  HandTo(*box, std::move(arrival));
}

void HttpLoop::HandTo(HttpMailbox& box, Arrival arrival) {
  const Arrival copy = arrival;
  if (box.Post(std::move(arrival))) return;
  if (!copy.replaces) site_.gate.Leave(copy.peer);
  TurnAway(copy, 503, "stopping");
}

void HttpLoop::Adopt(Arrival arrival) {
  if (arrival.replaces && !arrival.reserved) {
    arrival.reserved = !MakeRoom() || site_.gate.Enter(arrival.peer) != HttpGate::Verdict::kWelcome;
    // All reserved seats are in one loop, given in the order of its mail: who has sat on one for longest is known there.
    if (arrival.reserved) return HandTo(*site_.loops.First(), std::move(arrival));
  }
  if (arrival.reserved && !TakeReservedSeat(arrival.peer)) return TurnAway(arrival, 503, "full");
  if (arrival.replaces) ++mailbox_->connections;
  const int yes = 1;
  ::setsockopt(arrival.descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  ::setsockopt(arrival.descriptor, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  SslSession session = site_.tls ? site_.tls->Accept(arrival.descriptor) : nullptr;
  if (site_.tls && !session) {  // never fall back to speaking plainly
    site_.gate.Leave(arrival.peer);
    --mailbox_->connections;
    return TurnAway(arrival, 503, "memory");
  }
  const auto connection =
      std::make_shared<HttpConnection>(std::move(arrival), std::move(session), *this, site_, mailbox_);
  Connections& list = connection->reserved() ? reserved_ : waiting_;
  connection->seat.at = list.insert(list.end(), connection);
  connection->seat.in = &list;
  connection->seat.since = now_;
  PublishLongestWait();
  if (!Watch(connection->descriptor(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, connection.get()))
    connection->Close();
}

// Somebody goes: who has waited longest for its client, or the oldest stream. False when there is neither.
bool HttpLoop::MakeRoom() {
  if (waiting_.empty()) return EndOldestStream();
  site_.CountRejected("evicted");
  const std::shared_ptr<HttpConnection> longest = waiting_.front();
  longest->Close();
  return true;
}

// When all are taken, who has sat on one for longest without having asked for anything goes.
bool HttpLoop::TakeReservedSeat(const std::string& peer) {
  if (site_.gate.EnterReserved(peer)) return true;
  const auto idle = std::find_if(reserved_.begin(), reserved_.end(), [](const auto& c) { return !HasSent(*c); });
  if (idle == reserved_.end()) return false;
  site_.CountRejected("evicted");
  const std::shared_ptr<HttpConnection> longest = *idle;
  longest->Close();
  return site_.gate.EnterReserved(peer);
}

// The loop that has the oldest stream of all ends it, until there are no more than may be.
void HttpLoop::EndStreamsBeyond() {
  while (site_.streams > site_.options.limits.streams) {
    const std::shared_ptr<HttpMailbox> box = site_.loops.OldestStream();
    if (box == nullptr) return;
    if (box != mailbox_) return box->Wake();
    EndOldestStream();
  }
}

bool HttpLoop::EndOldestStream() {
  if (streams_.empty()) return false;
  site_.CountRejected("stream_evicted");
  const std::shared_ptr<HttpConnection> oldest = streams_.front()->shared_from_this();
  oldest->EndStream();
  return true;
}

void HttpLoop::TurnAway(const Arrival& arrival, int status, std::string_view reason) {
  site_.CountRejected(reason);
  if (!site_.tls) {  // without a handshake there is nothing a TLS client would understand
    Response response = ErrorResponse(status, status == 429 ? "too many connections from this address"
                                                            : "the server has as many connections as it may");
    response.headers.emplace_back("Retry-After", "1");
    std::string text;
    AppendHead(text, response, {.keep_alive = false, .length = response.body.size()}, date_);
    text += response.body;
    ::send(arrival.descriptor, text.data(), text.size(), MSG_NOSIGNAL);
    ::shutdown(arrival.descriptor, SHUT_WR);
    char dropped[16 << 10];  // what is left unread would make the end a reset that overtakes the answer
    [[maybe_unused]] const ssize_t got = ::recv(arrival.descriptor, dropped, sizeof dropped, 0);
  }
  ::close(arrival.descriptor);
}

void HttpLoop::TakeMail() {
  mailbox_->Take(mail_, arrivals_);
  for (Arrival& arrival : arrivals_) Adopt(std::move(arrival));
  for (const Mail& mail : mail_) mail.to->OnMail(mail.kind);
  mail_.clear();
}

void HttpLoop::Waits(HttpConnection& connection) {
  Seat(connection, connection.reserved() ? reserved_ : waiting_);
  connection.seat.since = now_;
  PublishLongestWait();
}

void HttpLoop::Works(HttpConnection& connection) {
  Seat(connection, working_);
  PublishLongestWait();
}

void HttpLoop::Seat(HttpConnection& connection, Connections& list) {
  list.splice(list.end(), *connection.seat.in, connection.seat.at);
  connection.seat.in = &list;
}

void HttpLoop::Streams(HttpConnection& connection) {
  Works(connection);
  connection.seat.stream_since = now_;
  streams_.push_back(&connection);
  PublishOldestStream();
  ++site_.streams;
}

void HttpLoop::StreamEnded(HttpConnection& connection) {
  streams_.remove(&connection);
  --site_.streams;
  PublishOldestStream();
}

void HttpLoop::Again(HttpConnection& connection) {
  if (!std::exchange(connection.seat.again, true)) again_.push_back(connection.shared_from_this());
}

void HttpLoop::Leaves(HttpConnection& connection) {
  auto& seat = connection.seat;
  closed_.push_back(*seat.at);
  seat.in->erase(seat.at);
  site_.gate.Leave(connection.peer());
  --mailbox_->connections;
  PublishLongestWait();
}

void HttpLoop::PublishLongestWait() {
  const auto since = waiting_.empty() ? HttpSite::kNever : waiting_.front()->seat.since.count();
  mailbox_->longest_wait_since.store(since, std::memory_order_relaxed);
}

void HttpLoop::PublishOldestStream() {
  const auto since = streams_.empty() ? HttpSite::kNever : streams_.front()->seat.stream_since.count();
  mailbox_->oldest_stream_since.store(since, std::memory_order_relaxed);
}

std::vector<std::shared_ptr<HttpConnection>> HttpLoop::All() const {
  std::vector<std::shared_ptr<HttpConnection>> all(waiting_.begin(), waiting_.end());
  all.insert(all.end(), reserved_.begin(), reserved_.end());
  all.insert(all.end(), working_.begin(), working_.end());
  return all;
}

}  // namespace freshet::serve
