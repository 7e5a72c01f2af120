#include "serve/http/acceptor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace freshet::serve {
namespace {

constexpr int kBacklog = 1024;

struct Address {
  sockaddr_storage storage{};
  socklen_t size = sizeof(sockaddr_storage);
  sockaddr* any() { return reinterpret_cast<sockaddr*>(&storage); }
};

Result<Address> Parse(const std::string& text, int port) {
  Address address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (port < 0 || port > 65'535) return Error{Code::kInvalid, Str("port ", port, " is not between 0 and 65535")};
  if (inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<std::uint16_t>(port));
    address.size = sizeof *v4;
  } else if (inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(static_cast<std::uint16_t>(port));
    address.size = sizeof *v6;
  } else {
    return Error{Code::kInvalid, Str("address ", Quoted(text), " is not numeric; give one like 127.0.0.1 or ::1")};
  }
  return address;
}

std::string TextOf(const Address& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.storage.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_addr, text, sizeof text);
    return text;
  }
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) {
    inet_ntop(AF_INET, v6.s6_addr + 12, text, sizeof text);
  } else {
    inet_ntop(AF_INET6, &v6, text, sizeof text);
  }
  return text;
}

Error Failed(const std::string& address, int port) {
  const Code code = errno == EADDRINUSE ? Code::kBusy : Code::kIo;
  return {code, Str("cannot listen on ", address, " port ", port, ": ", std::generic_category().message(errno))};
}

int OpenReserve() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

}  // namespace

Result<std::unique_ptr<HttpAcceptor>> HttpAcceptor::Open(const std::string& text, int port) {
  Address address = TRY(Parse(text, port));
  const int descriptor = ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return Failed(text, port);
  const int yes = 1;
  ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  Address bound;
  if (::bind(descriptor, address.any(), address.size) != 0 || ::listen(descriptor, kBacklog) != 0 ||
      ::getsockname(descriptor, bound.any(), &bound.size) != 0) {
    Error error = Failed(text, port);
    ::close(descriptor);
    return error;
  }
  // The port has the same place in the addresses of both families.
  const int chosen = ntohs(reinterpret_cast<const sockaddr_in*>(&bound.storage)->sin_port);
  return std::unique_ptr<HttpAcceptor>(new HttpAcceptor(descriptor, chosen));
}

HttpAcceptor::HttpAcceptor(int descriptor, int port) : descriptor_(descriptor), port_(port), reserve_(OpenReserve()) {}

HttpAcceptor::~HttpAcceptor() {
  ::close(descriptor_);
  if (reserve_ >= 0) ::close(reserve_);
}

HttpAcceptor::Outcome HttpAcceptor::Accept(Arrival& arrival) {
  Address peer, local;
  arrival.descriptor = ::accept4(descriptor_, peer.any(), &peer.size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (arrival.descriptor < 0) {
    if (errno == EMFILE || errno == ENFILE) return TurnAway();
    // Nobody is there, or somebody who left again while waiting, or we have been shut down.
    static constexpr int kHarmless[] = {EAGAIN, EINTR, ECONNABORTED, EPROTO, EPERM, EINVAL};
    const bool nobody = std::find(std::begin(kHarmless), std::end(kHarmless), errno) != std::end(kHarmless);
    return nobody ? Outcome::kNobody : Outcome::kFailed;
  }
  ::getsockname(arrival.descriptor, local.any(), &local.size);
  arrival.peer = TextOf(peer);
  arrival.local = TextOf(local);
  return Outcome::kArrived;
}

HttpAcceptor::Outcome HttpAcceptor::TurnAway() {
  const base::Lock lock(mutex_);
  if (reserve_ >= 0) ::close(reserve_);
  const int descriptor = ::accept4(descriptor_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (descriptor >= 0) ::close(descriptor);
  reserve_ = OpenReserve();
  return Outcome::kNoDescriptors;
}

void HttpAcceptor::ShutDown() { ::shutdown(descriptor_, SHUT_RDWR); }

}  // namespace freshet::serve
