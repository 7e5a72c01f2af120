#include "fabric/tcp/socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace freshet::fabric::tcp {
namespace {

constexpr int kSocketFlags = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

std::string Text(const Address& address) { return Str(address.host, ":", address.port); }

Error SystemError(std::string_view doing, const Address& address) {
  return {Code::kIo, Str("cannot ", doing, " ", Text(address), ": ", std::strerror(errno))};
}

using Resolved = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;
Result<Resolved> Resolve(const Address& address, bool passive) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(address.host.c_str(), Str(address.port).c_str(), &hints, &found);
  if (error != 0)
    return Error{Code::kNotFound, Str("cannot find the host ", Quoted(address.host), ": ", ::gai_strerror(error))};
  return Resolved(found, &::freeaddrinfo);
}

bool PollFor(int socket, short events, const Deadline& deadline) {
  pollfd wanted{.fd = socket, .events = events, .revents = 0};
  while (true) {
    Await({&wanted, 1}, deadline.clock(), deadline.Next());
    if (wanted.revents != 0) return true;
    if (deadline.Passed()) return false;
  }
}

// Until there is something to read.
Result<void> AwaitMore(const Conduit& conduit, const Deadline& deadline, const Conduit* watched) {
  if (deadline.Passed()) return Error{Code::kTimeout, "it does not answer"};
  pollfd wanted[2] = {{.fd = conduit.socket(), .events = POLLIN, .revents = 0},
                      {.fd = watched ? watched->socket() : -1, .events = POLLRDHUP, .revents = 0}};
  Await(wanted, deadline.clock(), deadline.Next());
  if (wanted[1].revents != 0) return Error{Code::kPeerLost, "rank 0 has gone meanwhile"};
  return {};
}

// A socket that dials a free port of its own range can meet itself.
bool MeetsItself(int socket) {
  sockaddr_storage ours{}, theirs{};
  socklen_t ours_size = sizeof ours, theirs_size = sizeof theirs;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&ours), &ours_size);
  ::getpeername(socket, reinterpret_cast<sockaddr*>(&theirs), &theirs_size);
  return ours_size == theirs_size && std::memcmp(&ours, &theirs, ours_size) == 0;
}

}  // namespace

base::Clock::Duration Deadline::Next() const {
  constexpr base::Clock::Duration kLook = std::chrono::milliseconds(100);
  return stop_ == nullptr ? end_ : std::min(end_, clock_->Now() + kLook);
}

void Await(std::span<pollfd> sockets, const base::Clock& clock, base::Clock::Duration end) {
  // A clock waits for one descriptor: one that is ready when any of these is.
  const base::Descriptor all(::epoll_create1(EPOLL_CLOEXEC));
  for (const pollfd& socket : sockets) {
    epoll_event event{.events = static_cast<std::uint32_t>(socket.events), .data = {}};
    if (socket.fd >= 0) (void)::epoll_ctl(all.get(), EPOLL_CTL_ADD, socket.fd, &event);
  }
  (void)clock.WaitReadable(all.get(), end);
  ::poll(sockets.data(), sockets.size(), 0);
}

Result<Address> ParseAddress(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  const auto wrong = [&] {
    return Error{Code::kInvalid, Str(Quoted(text), " is not an address; write host:port, or [host]:port for IPv6")};
  };
  if (colon == text.npos || colon == 0) return wrong();
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const std::string_view digits = text.substr(colon + 1);
  int port = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port < 0 || port > 65535) return wrong();
  return Address{std::string(host), port};
}

Result<base::Descriptor> Listen(const Address& at) {
  const Resolved found = TRY(Resolve(at, true));
  base::Descriptor socket(::socket(found->ai_family, kSocketFlags, 0));
  const int on = 1;
  if (!socket.open()) return SystemError("open a socket for", at);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket.get(), found->ai_addr, found->ai_addrlen) != 0) return SystemError("listen at", at);
  if (::listen(socket.get(), 1024) != 0) return SystemError("listen at", at);
  return socket;
}

Result<base::Descriptor> Connect(const Address& to, const Deadline& deadline) {
  const Resolved found = TRY(Resolve(to, false));
  for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
    base::Descriptor socket(::socket(at->ai_family, kSocketFlags, 0));
    if (!socket.open()) return SystemError("open a socket for", to);
    if (::connect(socket.get(), at->ai_addr, at->ai_addrlen) != 0) {
      if (errno != EINPROGRESS) continue;
      if (!PollFor(socket.get(), POLLOUT, deadline)) return Error{Code::kTimeout, Str("no answer from ", Text(to))};
      socklen_t size = sizeof errno;
      ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &errno, &size);
      if (errno != 0) continue;
    }
    if (!MeetsItself(socket.get())) return socket;
    errno = ECONNREFUSED;
  }
  return SystemError("connect to", to);
}

Result<base::Descriptor> StartConnect(const Address& to) {
  const Resolved found = TRY(Resolve(to, false));
  base::Descriptor socket(::socket(found->ai_family, kSocketFlags, 0));
  if (!socket.open()) return SystemError("open a socket for", to);
  if (::connect(socket.get(), found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS)
    return SystemError("connect to", to);
  return socket;
}

void Tune(const Conduit& conduit) {
  const int on = 1;
  ::setsockopt(conduit.socket(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Address LocalAddress(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "0";
  ::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
  return {host, std::atoi(port)};
}

Result<void> ShakeHands(Conduit& conduit, const Deadline& deadline, const Conduit* watched) {
  while (!TRY(conduit.Handshake())) TRY(AwaitMore(conduit, deadline, watched));
  return {};
}

Result<void> SendAll(Conduit& conduit, std::string_view bytes, const Deadline& deadline) {
  while (!bytes.empty() || conduit.unwritten()) {
    const iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    const std::size_t sent = TRY(conduit.Write({&part, 1}));
    bytes.remove_prefix(sent);
    if (sent > 0 && !conduit.unwritten()) continue;
    if (deadline.Passed()) return Error{Code::kTimeout, "it does not read what we say"};
    PollFor(conduit.socket(), POLLOUT, deadline);
  }
  return {};
}

Result<std::string> ReceiveAll(Conduit& conduit, std::size_t bytes, const Deadline& deadline, const Conduit* watched) {
  std::string received(bytes, '\0');
  for (std::size_t got = 0; got < bytes;) {
    const iovec part{received.data() + got, bytes - got};
    const std::size_t count = TRY(conduit.Read({&part, 1}));
    got += count;
    if (count == 0) TRY(AwaitMore(conduit, deadline, watched));
  }
  return received;
}

bool Closed(const Conduit& conduit) {
  pollfd wanted{.fd = conduit.socket(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&wanted, 1, 0) > 0;
}

}  // namespace freshet::fabric::tcp
