#include "fabric/tcp/engine.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "base/check.h"

namespace freshet::fabric::tcp {
namespace {

constexpr std::size_t kWindowBytes = 8 << 20;  // of short messages that a receiver keeps for later, for each peer
constexpr std::size_t kEagerCost = 128;        // of a message beside its bytes, so that empty ones count too
constexpr std::uint32_t kInterrupt = ~0u;
constexpr std::size_t kOffers = 1 << 16;  // of long messages, for each peer

}  // namespace

Engine::Engine(const TcpOptions& options, std::vector<Link> links, const base::Clock& clock)
    : options_(options),
      clock_(clock),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      interrupt_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      last_tick_(clock.Now()) {
  CHECK(epoll_.open());
  for (std::size_t rank = 0; rank < links.size(); ++rank) {
    const Peer::Settings settings{.generation = options.generation, .checksum = options.checksum};
    peers_.push_back(std::make_unique<Peer>(static_cast<int>(rank), std::move(links[rank]), settings));
    Peer& added = *peers_.back();
    added.last_heard = added.last_spoken = last_tick_;
    if (!added.open()) continue;
    epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {.u32 = static_cast<std::uint32_t>(rank)}};
    CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, added.socket(), &event) == 0);
  }
  CHECK(interrupt_.open());
  epoll_event event{.events = EPOLLIN, .data = {.u32 = kInterrupt}};
  CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, interrupt_.get(), &event) == 0);
}

Engine::~Engine() = default;

Result<void> Engine::CheckRank(int rank, std::string_view doing) const {
  if (failure_.has_value()) return *failure_;
  if (rank < 0 || rank >= options_.size || rank == options_.rank)
    return Error{Code::kInvalid, Str("rank ", options_.rank, " of ", options_.size, " cannot ", doing, " rank ", rank)};
  return {};
}

Operation& Engine::Add(Operation::Kind kind, int rank, Tag tag) {
  const std::uint64_t id = next_id_++;
  Operation& operation = operations_[id];
  operation.id = id;
  operation.kind = kind;
  operation.peer = rank;
  operation.tag = tag;
  return operation;
}

Result<std::uint64_t> Engine::StartSend(int to, Tag tag, std::span<const std::byte> bytes) {
  TRY(CheckRank(to, "send to"));
  Peer& other = peer(to);
  if (other.left) {
    Fail(to, LeftText(to));
    return *failure_;
  }
  if (bytes.size() > options_.max_message_bytes)
    return Error{Code::kInvalid, Str("a message of ", bytes.size(), " bytes is longer than ",
                                     options_.max_message_bytes, ", the most that may be sent at once")};
  Operation& send = Add(Operation::Kind::kSend, to, tag);
  send.out = bytes;
  send.bytes = bytes.size();
  const std::size_t cost = bytes.size() + kEagerCost;
  if (bytes.size() <= kEagerBytes && other.eager_out + cost <= kWindowBytes) {
    other.eager_out += cost;
    send.moved = bytes.size();
    other.Send({.type = FrameType::kEager, .tag = tag, .id = send.id}, bytes, &send);
  } else {
    other.Send({.type = FrameType::kRequest, .tag = tag, .id = send.id, .argument = bytes.size()});
  }
  const std::uint64_t id = send.id;
  Flush(other);
  return id;
}

Result<std::uint64_t> Engine::StartReceive(Operation::Kind kind, int from, Tag tag, Landing landing) {
  if (from != kAnyRank) TRY(CheckRank(from, "receive from"));
  if (failure_.has_value()) return *failure_;
  Operation& receive = Add(kind, from, tag);
  receive.landing = landing;
  if (auto message = matching_.TakeMessage(from, tag)) {
    Peer& sender = peer(message->from);
    if (message->whole) {
      sender.eager_in -= message->bytes + kEagerCost;
    } else {
      --sender.requests_in;
    }
    Accept(receive, *message, message->content);
    Flush(sender);
  } else if (from == kAnyRank ? !AnyoneLeft() : peer(from).left) {
    operations_.erase(receive.id);
    Fail(from, from == kAnyRank ? "all other members have left the group" : LeftText(from));
    return *failure_;
  } else {
    matching_.Post(receive);
  }
  return receive.id;
}

bool Engine::Done(std::uint64_t id) const {
  const auto found = operations_.find(id);
  return found == operations_.end() || found->second.done;
}

Result<Arrived> Engine::Take(std::uint64_t id) {
  const auto found = operations_.find(id);
  if (found == operations_.end())
    return failure_.has_value() ? *failure_ : Error{Code::kInvalid, "this transfer is not under way"};
  Operation& operation = found->second;
  CHECK(operation.done);
  if (operation.error.has_value()) {
    Error error = std::move(*operation.error);
    if (error.code == Code::kPeerLost && failure_.has_value()) error.text += Wanted(operation);
    operations_.erase(found);
    return error;
  }
  Arrived arrived{.from = operation.peer, .bytes = operation.bytes, .view = {}};
  if (operation.kind == Operation::Kind::kBorrow) {
    arrived.view = std::span<const std::byte>(operation.lent.bytes.get(), operation.bytes);
  } else {
    operations_.erase(found);
  }
  return arrived;
}

void Engine::Release(std::uint64_t id) {
  const auto found = operations_.find(id);
  if (found == operations_.end()) return;
  CHECK(found->second.kind == Operation::Kind::kBorrow && found->second.done);
  spare_.push_back(std::move(found->second.lent));
  if (spare_.size() > 2 * peers_.size()) spare_.pop_front();
  operations_.erase(found);
}

Error Engine::Timeout(std::uint64_t id, base::Clock::Duration waited) {
  const auto found = operations_.find(id);
  CHECK(found != operations_.end());
  Operation& operation = found->second;
  Error error{Code::kTimeout, Str("nothing for ", Fixed(base::Seconds(waited), 1), " s", Wanted(operation))};
  if (operation.kind != Operation::Kind::kSend) {
    matching_.Remove(operation);
    if (operation.peer != kAnyRank) peer(operation.peer).Forget(operation);
  } else if (!peer(operation.peer).Forget(operation)) {
    // Its bytes are half way, and cannot be called back.
    Fail(operation.peer, Str(Name(operation.peer), " does not take what it asked for"));
  } else if (operation.moved == 0) {
    peer(operation.peer).Send({.type = FrameType::kCancel, .id = id});
    Flush(peer(operation.peer));
  }
  operations_.erase(id);
  return error;
}

Operation* Engine::SendOf(const Peer& to, std::uint64_t id) {
  const auto found = operations_.find(id);
  if (found == operations_.end()) return nullptr;
  Operation& send = found->second;
  return send.kind == Operation::Kind::kSend && send.peer == to.rank() ? &send : nullptr;
}

Operation* Engine::ReceiveOf(Peer& from, std::uint64_t id) {
  const auto found = operations_.find(id);
  if (found == operations_.end()) return nullptr;
  Operation& receive = found->second;
  const bool waits = receive.kind != Operation::Kind::kSend && receive.peer == from.rank() && receive.matched;
  return waits && !receive.done ? &receive : nullptr;
}

void Engine::OnMoved(Operation& operation) { operation.Finish(); }

Result<void> Engine::OnFrame(Peer& from, const Header& header, std::span<const std::byte> payload) {
  switch (header.type) {
    case FrameType::kEager:
      return OnMessage(from, {from.rank(), header.tag, header.id, payload.size(), true, {}}, payload);
    case FrameType::kRequest:
      if (header.argument > options_.max_message_bytes)
        return Error{Code::kCorrupt, Str("it offers a message of ", header.argument, " bytes, at most ",
                                         options_.max_message_bytes, " are taken")};
      return OnMessage(from, {from.rank(), header.tag, header.id, header.argument, false, {}}, {});
    case FrameType::kClear:
      if (Operation* const send = SendOf(from, header.id); send != nullptr && !send->matched && send->moved == 0) {
        send->matched = true;
        send->peer_id = header.argument;
        if (send->out.empty()) {
          send->Finish();
        } else {
          from.SendBulk(*send);
          Flush(from);
        }
      }
      return {};
    case FrameType::kRefuse:
      OnRefuse(from, header);
      return {};
    case FrameType::kCancel:
      return OnCancel(from, header);
    case FrameType::kCredit:
      from.eager_out -= std::min<std::size_t>(from.eager_out, header.argument);
      return {};
    case FrameType::kAbort:
      OnAbort(from, header, payload);
      return {};
    case FrameType::kGoodbye:
      OnGoodbye(from);
      return {};
    case FrameType::kHeartbeat:
    case FrameType::kWake:
    case FrameType::kData:
      return {};
  }
  return {};
}

Result<void> Engine::OnMessage(Peer& from, Matching::Message message, std::span<const std::byte> content) {
  if (Operation* const receive = matching_.TakeReceive(from.rank(), message.tag)) {
    Accept(*receive, message, content);
    Flush(from);
    return {};
  }
  if (message.whole) {
    from.eager_in += message.bytes + kEagerCost;
    message.content.assign(content.begin(), content.end());
  } else {
    ++from.requests_in;
  }
  if (from.eager_in > kWindowBytes + kEagerBytes * 2 || from.requests_in > kOffers)
    return Error{Code::kCorrupt, "it sends more than anybody here receives"};
  matching_.Keep(std::move(message));
  return {};
}

// A receive has found its message: takes it if it is here, asks for it otherwise.
void Engine::Accept(Operation& receive, const Matching::Message& message, std::span<const std::byte> content) {
  Peer& sender = peer(message.from);
  receive.peer = message.from;
  receive.matched = true;
  receive.bytes = message.bytes;
  receive.peer_id = message.send_id;
  if (message.whole) Credit(sender, message.bytes + kEagerCost);
  if (!Fits(receive, message)) {
    const std::size_t room = receive.kind == Operation::Kind::kBorrow ? 0 : receive.landing.room();
    sender.Send({.type = FrameType::kRefuse, .id = message.send_id, .argument = room});
    return;
  }
  if (message.whole) {
    receive.landing.Put(content);
    receive.Finish();
  } else {
    sender.Send({.type = FrameType::kClear, .id = message.send_id, .argument = receive.id});
    if (message.bytes == 0) receive.Finish();
  }
}

// Whether there is room for the message; makes it for a borrow. The receive has failed otherwise.
bool Engine::Fits(Operation& receive, const Matching::Message& message) {
  if (receive.kind == Operation::Kind::kBorrow) {
    const auto fits = [&](const Buffer& b) { return b.size >= message.bytes && b.size / 4 <= message.bytes; };
    const auto spare = std::find_if(spare_.begin(), spare_.end(), fits);
    if (spare != spare_.end()) {
      receive.lent = std::move(*spare);
      spare_.erase(spare);
    } else {
      receive.lent = {std::unique_ptr<std::byte[]>(new (std::nothrow) std::byte[message.bytes]), message.bytes};
    }
    if (receive.lent.bytes == nullptr) {
      receive.Finish({Code::kInvalid, Str("no memory for ", message.bytes, " bytes from ", Name(message.from))});
      return false;
    }
    receive.landing = Landing(std::span(receive.lent.bytes.get(), message.bytes));
    return true;
  }
  if (message.bytes > receive.landing.room() || (receive.landing.adds() && message.bytes % sizeof(float) != 0)) {
    receive.Finish({Code::kInvalid, Str(Name(message.from), " sent ", message.bytes, " bytes (tag ", message.tag,
                                        "), rank ", options_.rank, " has room for ", receive.landing.room())});
    return false;
  }
  return true;
}

void Engine::Credit(Peer& to, std::size_t bytes) {
  to.credit_due += bytes;
  if (to.credit_due < kWindowBytes / 4) return;
  to.Send({.type = FrameType::kCredit, .argument = to.credit_due});
  to.credit_due = 0;
}

void Engine::OnRefuse(Peer& from, const Header& header) {
  Operation* const send = SendOf(from, header.id);
  if (send == nullptr || (send->matched && !send->done)) return;
  send->Finish({Code::kInvalid, Str(Name(from.rank()), " has room for ", header.argument, " bytes, rank ",
                                    options_.rank, " sent it ", send->bytes, " (tag ", send->tag, ")")});
}

Result<void> Engine::OnCancel(Peer& from, const Header& header) {
  matching_.RemoveOffer(from.rank(), header.id);
  for (auto& [id, receive] : operations_) {
    if (receive.kind == Operation::Kind::kSend || receive.done || receive.peer != from.rank()) continue;
    if (receive.matched && receive.peer_id == header.id)
      receive.Finish({Code::kTimeout, Str(Name(from.rank()), " gave up sending", Wanted(receive))});
  }
  return {};
}

bool Engine::Turn() {
  bool any = false;
  epoll_event events[16];
  const int count = ::epoll_wait(epoll_.get(), events, 16, 0);
  for (int i = 0; i < count; ++i) {
    if (events[i].data.u32 == kInterrupt) {
      ::eventfd_t times;
      ::eventfd_read(interrupt_.get(), &times);
      continue;
    }
    Peer& ready = *peers_[events[i].data.u32];
    if (!ready.open()) continue;
    if ((events[i].events & EPOLLOUT) != 0) Flush(ready);
    if ((events[i].events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) Handle(ready, ready.Read(*this), any);
  }
  for (const auto& other : peers_)
    if (other->shares_memory() && !failure_.has_value()) Handle(*other, other->TurnLane(*this), any);
  return any;
}

void Engine::Handle(Peer& from, const Result<bool>& outcome, bool& any) {
  if (!outcome.ok()) return Lose(from, outcome.error().text);
  if (!outcome.value()) return;
  any = true;
  Flush(from);
}

bool Engine::PrepareSleep() {
  bool nothing = true;
  for (const auto& other : peers_) nothing = other->SleepLane(true) && nothing;
  return nothing;
}

void Engine::Awake() {
  for (const auto& other : peers_) other->SleepLane(false);
}

void Engine::Interrupt() { ::eventfd_write(interrupt_.get(), 1); }

void Engine::Flush(Peer& to) {
  if (!to.open()) return;
  to.Flush(*this);
  Poll(to, to.Blocked());
}

void Engine::Poll(Peer& to, bool writing) {
  if (to.polled_for_writing == writing) return;
  to.polled_for_writing = writing;
  const std::uint32_t wanted = EPOLLIN | EPOLLRDHUP | (writing ? std::uint32_t{EPOLLOUT} : 0u);
  epoll_event event{.events = wanted, .data = {.u32 = static_cast<std::uint32_t>(to.rank())}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, to.socket(), &event);
}

std::uint64_t Engine::bytes_sent() const {
  std::uint64_t sum = 0;
  for (const auto& other : peers_) sum += other->bytes_sent();
  return sum;
}
std::uint64_t Engine::bytes_shared() const {
  std::uint64_t sum = 0;
  for (const auto& other : peers_) sum += other->bytes_shared();
  return sum;
}
int Engine::sharing() const {
  return static_cast<int>(std::count_if(peers_.begin(), peers_.end(), [](auto& p) { return p->shares_memory(); }));
}
int Engine::near() const {
  const std::string& boot = peers_[static_cast<std::size_t>(options_.rank)]->place().boot;
  return static_cast<int>(
      std::count_if(peers_.begin(), peers_.end(), [&](auto& p) { return p->place().boot == boot; }));
}

}  // namespace freshet::fabric::tcp
