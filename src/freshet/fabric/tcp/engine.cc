#include "fabric/tcp/engine.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/check.h"

namespace freshet::fabric::tcp {
namespace {

constexpr std::uint32_t kInterrupt = ~0u;  // in place of a rank

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
  if (failure_.has_value()) return true;  // what lies in shared memory stays there
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
