#include "fabric/tcp/engine.h"

#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"

namespace freshet::fabric::tcp {
namespace {

constexpr std::uint32_t kInterrupt = ~0u;  // in place of a rank

std::vector<std::string> HostsOf(const std::vector<Link>& links) {
  std::vector<std::string> hosts;
  for (const Link& link : links) hosts.push_back(link.home.host);
  return hosts;
}

}  // namespace

Engine::Engine(const TcpOptions& options, std::vector<Link> links, const base::Clock& clock)
    : Protocol({.rank = options.rank,
                .hosts = HostsOf(links),
                .eager_bytes = kEagerBytes,
                .max_message_bytes = options.max_message_bytes,
                .heartbeat = options.heartbeat,
                .heartbeat_misses = options.heartbeat_misses,
                .on_loss = options.on_loss},
               clock),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      interrupt_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  CHECK(epoll_.open());
  for (std::size_t rank = 0; rank < links.size(); ++rank) {
    const Peer::Settings settings{.generation = options.generation, .checksum = options.checksum};
    peers_.push_back(std::make_unique<Peer>(static_cast<int>(rank), std::move(links[rank]), settings));
    const Peer& added = *peers_.back();
    if (!added.open()) continue;
    epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {.u32 = static_cast<std::uint32_t>(rank)}};
    CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, added.socket(), &event) == 0);
  }
  CHECK(interrupt_.open());
  epoll_event event{.events = EPOLLIN, .data = {.u32 = kInterrupt}};
  CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, interrupt_.get(), &event) == 0);
}

Engine::~Engine() = default;

void Engine::Send(int to, const Note& note, std::span<const std::byte> payload, Operation* operation) {
  const Header header{.type = note.type, .tag = note.tag, .id = note.id, .argument = note.argument};
  if (operation != nullptr || payload.empty()) return peer(to).Send(header, payload, operation);
  peer(to).SendText(header, std::string(reinterpret_cast<const char*>(payload.data()), payload.size()));
}

Result<void> Engine::OnFrame(Peer& from, const Header& header, std::span<const std::byte> payload) {
  // What it left in shared memory before it went is still to be read: the socket may be faster.
  while (header.type == FrameType::kGoodbye && TRY(from.TurnLane(*this))) {
  }
  return OnNote(from.rank(), {header.type, header.tag, header.id, header.argument}, payload);
}

base::Clock::Duration Engine::Tick() {
  for (const auto& other : peers_)
    if (std::exchange(other->heard, false)) Heard(other->rank());
  return Protocol::Tick();
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
    if ((events[i].events & EPOLLOUT) != 0) {
      Flush(ready);
      any = true;  // a send may have ended, for which somebody waits without driving
    }
    if ((events[i].events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) Handle(ready, ready.Read(*this), any);
  }
  for (const auto& other : peers_) {
    if (other->unread()) Handle(*other, other->Read(*this), any);
    if (other->shares_memory() && !failure().has_value()) Handle(*other, other->TurnLane(*this), any);
  }
  return any;
}

void Engine::Handle(Peer& from, const Result<bool>& outcome, bool& any) {
  any = any || !outcome.ok() || outcome.value();  // what came before a connection ended may be all that was waited for
  if (!outcome.ok()) return Lose(from.rank(), outcome.error().text);
  if (!outcome.value()) return;
  Flush(from);
}

bool Engine::PrepareSleep() {
  if (failure().has_value()) return true;  // what lies in shared memory stays there
  bool nothing = true;
  for (const auto& other : peers_) nothing = other->SleepLane(true) && !other->unread() && nothing;
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

void Engine::Shut(int rank) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, peer(rank).socket(), nullptr);
  peer(rank).Close();
}

bool Engine::Quiet() {
  bool quiet = true;
  for (const auto& other : peers_) {
    if (!other->open() || left(other->rank())) continue;
    if (!other->Blocked()) ::shutdown(other->socket(),
                                      SHUT_WR);  // an end is acknowledged at once, other bytes are not
    int unsent = 0;
    ::ioctl(other->socket(), SIOCOUTQ, &unsent);
    quiet = quiet && !other->Blocked() && unsent == 0;
  }
  return quiet;
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
  const std::string& boot = peers_[static_cast<std::size_t>(rank())]->home().boot;
  return static_cast<int>(std::count_if(peers_.begin(), peers_.end(), [&](auto& p) { return p->home().boot == boot; }));
}

}  // namespace freshet::fabric::tcp
