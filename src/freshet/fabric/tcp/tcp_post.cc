#include "fabric/tcp/tcp_post.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/str.h"
#include "fabric/tcp/door.h"
#include "fabric/tcp/socket.h"

namespace freshet::fabric {

using base::Clock;

Result<std::unique_ptr<TcpPost>> TcpPost::Open(Options options, const Clock& clock) {
  base::Descriptor listener = TRY(tcp::Listen({options.host, 0}));
  base::Descriptor bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell.open()) return Error{Code::kIo, Str("cannot make an eventfd: ", std::strerror(errno))};
  return std::unique_ptr<TcpPost>(new TcpPost(std::move(options), std::move(listener), std::move(bell), clock));
}

TcpPost::TcpPost(Options options, base::Descriptor listener, base::Descriptor bell, const Clock& clock)
    : options_(std::move(options)), clock_(clock), listener_(std::move(listener)), bell_(std::move(bell)) {
  const tcp::Address at = tcp::LocalAddress(listener_.get());
  address_ = at.host.find(':') == std::string::npos ? Str(at.host, ":", at.port) : Str("[", at.host, "]:", at.port);
}

void TcpPost::Ring() {
  const std::uint64_t one = 1;
  (void)!::write(bell_.get(), &one, sizeof one);
}

void TcpPost::Send(const std::string& address, std::string letter) {
  CHECK(letter.size() <= tcp::kLetterBytes);
  {
    const base::Lock lock(mutex_);
    orders_.emplace_back(address, std::move(letter));
  }
  Ring();
}

void TcpPost::Wake() {
  {
    const base::Lock lock(mutex_);
    woken_ = true;
  }
  Ring();
}

std::uint64_t TcpPost::strangers() const {
  const base::Lock lock(mutex_);
  return strangers_;
}

std::optional<std::string> TcpPost::Receive(Clock::Duration until) {
  while (true) {
    {
      const base::Lock lock(mutex_);
      if (std::exchange(woken_, false)) return std::nullopt;
    }
    if (!letters_.empty()) {
      std::string letter = std::move(letters_.front());
      letters_.pop_front();
      return letter;
    }
    if (clock_.Now() >= until) return std::nullopt;
    TakeOrders();
    Look(until);
  }
}

void TcpPost::Flush(Clock::Duration until) {
  for (TakeOrders(); !errands_.empty() && clock_.Now() < until; TakeOrders()) Look(until);
}

void TcpPost::TakeOrders() {
  std::deque<std::pair<std::string, std::string>> orders;
  {
    const base::Lock lock(mutex_);
    orders.swap(orders_);
  }
  for (auto& [address, letter] : orders) {
    const auto to = tcp::ParseAddress(address);
    if (!to.ok()) continue;
    auto socket = tcp::StartConnect(to.value());
    if (!socket.ok()) continue;
    errands_.push_back({.letter = std::move(letter),
                        .socket = std::move(socket).value(),
                        .deadline = clock_.Now() + options_.patience});
  }
}

void TcpPost::Look(Clock::Duration until) {
  std::vector<pollfd> polled = {
      {.fd = bell_.get(), .events = POLLIN, .revents = 0},
      {.fd = guests_.size() < options_.guests ? listener_.get() : -1, .events = POLLIN, .revents = 0}};
  for (const Guest& guest : guests_) {
    polled.push_back({.fd = guest.socket.get(), .events = POLLIN, .revents = 0});
    until = std::min(until, guest.deadline);
  }
  for (const Errand& errand : errands_) {
    const short events = errand.sealed.empty() ? POLLIN : POLLOUT;
    polled.push_back({.fd = errand.socket.get(), .events = events, .revents = 0});
    until = std::min(until, errand.deadline);
  }
  tcp::Await(polled, clock_, until);
  std::uint64_t rung = 0;
  (void)!::read(bell_.get(), &rung, sizeof rung);
  auto at = polled.begin() + 2;
  for (auto guest = guests_.begin(); guest != guests_.end(); ++at) {
    const bool stays = (at->revents == 0 || Hear(*guest)) && clock_.Now() < guest->deadline;
    if (!stays && at->revents == 0) {  // it said nothing, or too little
      const base::Lock lock(mutex_);
      ++strangers_;
    }
    guest = stays ? std::next(guest) : guests_.erase(guest);
  }
  for (auto errand = errands_.begin(); errand != errands_.end(); ++at) {
    const bool stays = (at->revents == 0 || Run(*errand)) && clock_.Now() < errand->deadline;
    errand = stays ? std::next(errand) : errands_.erase(errand);
  }
  if (polled[1].revents != 0) LetIn();
}

void TcpPost::LetIn() {
  while (guests_.size() < options_.guests) {
    base::Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.open()) return;
    const tcp::Nonce nonce = tcp::NewNonce();
    if (::send(socket.get(), nonce.data(), nonce.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(nonce.size())) continue;
    guests_.push_back({.socket = std::move(socket), .nonce = nonce, .deadline = clock_.Now() + options_.patience});
  }
}

bool TcpPost::Hear(Guest& guest) {
  const auto stranger = [&] {
    const base::Lock lock(mutex_);
    ++strangers_;
    return false;
  };
  char bytes[16 << 10];
  const ssize_t got = ::recv(guest.socket.get(), bytes, sizeof bytes, 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR ? true : stranger();
  if (got == 0) return stranger();
  guest.heard.append(bytes, static_cast<std::size_t>(got));
  if (guest.heard.size() < tcp::kSealBytes) return true;
  const auto size = tcp::LetterBytes(std::string_view(guest.heard).substr(0, tcp::kSealBytes));
  if (!size.ok() || guest.heard.size() > tcp::kSealBytes + size.value()) return stranger();
  if (guest.heard.size() < tcp::kSealBytes + size.value()) return true;
  auto letter = tcp::OpenLetter(options_.token, options_.job, guest.nonce, guest.heard);
  if (!letter.ok()) return stranger();
  letters_.push_back(std::move(letter).value());
  return false;
}

bool TcpPost::Run(Errand& errand) {
  if (errand.sealed.empty()) {
    char bytes[sizeof(tcp::Nonce)];
    const ssize_t got = ::recv(errand.socket.get(), bytes, sizeof bytes - errand.nonce.size(), 0);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    errand.nonce.append(bytes, static_cast<std::size_t>(got));
    if (errand.nonce.size() < sizeof(tcp::Nonce)) return true;
    tcp::Nonce nonce;
    std::memcpy(nonce.data(), errand.nonce.data(), nonce.size());
    errand.sealed = tcp::SealLetter(options_.token, options_.job, nonce, errand.letter);
  }
  const ssize_t put = ::send(errand.socket.get(), errand.sealed.data() + errand.written,
                             errand.sealed.size() - errand.written, MSG_NOSIGNAL);
  if (put < 0) return errno == EAGAIN || errno == EINTR;
  errand.written += static_cast<std::size_t>(put);
  return errand.written < errand.sealed.size();
}

}  // namespace freshet::fabric
