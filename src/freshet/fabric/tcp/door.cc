#include "fabric/tcp/door.h"

#include <openssl/rand.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace freshet::fabric::tcp {
namespace {

constexpr base::Clock::Duration kFull = std::chrono::milliseconds(10);  // between two looks when nobody can come in

}  // namespace

// Nonces must not be foreseen, so they come from the cryptographic library and not from a seeded stream.
Nonce NewNonce() {
  Nonce nonce;
  CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(nonce.data()), nonce.size()) == 1);
  return nonce;
}

Door::Door(base::Descriptor listener, Settings settings, const base::Clock& clock)
    : listener_(std::move(listener)), settings_(std::move(settings)), clock_(clock) {}

void Door::Turn(base::Clock::Duration end, const std::function<std::string(int)>& wanted,
                const std::function<void(int, Link)>& entered, const std::vector<int>& watched) {
  std::vector<pollfd> polled{{.fd = listener_.get(), .events = POLLIN, .revents = 0}};
  for (const int socket : watched) polled.push_back({.fd = socket, .events = POLLRDHUP, .revents = 0});
  for (const Guest& guest : guests_) {
    polled.push_back({.fd = guest.conduit.socket(), .events = POLLIN, .revents = 0});
    end = std::min(end, guest.deadline.Next());
  }
  if (guests_.size() == kGuests) {  // those outside would wake us at once, and could not come in
    polled[0].fd = -1;
    end = std::min(end, clock_.Now() + kFull);
  }
  Await(polled, clock_, end);
  for (auto guest = guests_.begin(); guest != guests_.end();) {
    Result<bool> heard = Hear(*guest, wanted);
    while (heard.ok() && heard.value() && !guest->in) heard = Hear(*guest, wanted);
    const bool leaves = !heard.ok() || guest->deadline.Passed();
    if (guest->in) {
      Tune(guest->conduit);
      entered(guest->rank, Link{std::move(guest->conduit), std::move(guest->home), std::move(guest->shared)});
    } else if (leaves) {
      ++strangers_;
    }
    guest = guest->in || leaves ? guests_.erase(guest) : std::next(guest);
  }
  AcceptAll();
}

void Door::AcceptAll() {
  for (std::size_t i = 0; i < kGuests && MakeRoom(); ++i) {
    base::Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.open()) return;
    Conduit conduit(std::move(socket), settings_.tls, TlsSession::Side::kAccepts);
    guests_.emplace_back(std::move(conduit), settings_.badge, Deadline(clock_, kPatience), Deadline(clock_, kCourtesy));
  }
}

// A crowd of strangers must not push out a member in the middle of its handshake, nor keep one out for long.
bool Door::MakeRoom() {
  if (guests_.size() < kGuests) return true;
  const auto oldest =
      std::find_if(guests_.begin(), guests_.end(), [](const Guest& guest) { return guest.stage != Stage::kJoined; });
  if (oldest == guests_.end() || !oldest->courtesy.Passed()) return false;
  guests_.erase(oldest);
  ++strangers_;
  return true;
}

bool Door::IsJoining(int rank) const {
  return std::any_of(guests_.begin(), guests_.end(),
                     [&](const Guest& guest) { return guest.stage == Stage::kJoined && guest.rank == rank; });
}

// How long the message is that the guest is saying, as far as can be known yet.
Result<std::size_t> Door::Expected(const Guest& guest) {
  if (guest.stage == Stage::kHello) return kHelloBytes;
  if (guest.said.size() < kSealBytes) return kSealBytes;
  return kSealBytes + TRY(SealedBytes(guest.said));
}

Result<bool> Door::Hear(Guest& guest, const std::function<std::string(int)>& wanted) {
  if (guest.stage == Stage::kKnock) return HearKnock(guest);
  if (guest.stage == Stage::kTls) {
    const bool done = TRY(guest.conduit.Handshake());
    if (done) guest.stage = Stage::kHello;
    return done;
  }
  const std::size_t expected = TRY(Expected(guest));
  if (guest.said.size() < expected) {
    char bytes[kSealBytes + kBodyBytes];
    const iovec part{bytes, expected - guest.said.size()};
    const std::size_t count = TRY(guest.conduit.Read({&part, 1}));
    guest.said.append(bytes, count);
    return count > 0;
  }
  const std::string answer = TRY(Answer(guest, wanted));
  guest.said.clear();
  // A few hundred bytes: they fit into the socket of whoever plays by the rules.
  const iovec part{const_cast<char*>(answer.data()), answer.size()};
  if (TRY(guest.conduit.Write({&part, 1})) != answer.size() || guest.conduit.unwritten())
    return Error{Code::kIo, "it does not listen"};
  if (guest.refused) return Error{Code::kInvalid, "it was refused"};
  return true;
}

// A member that has TLS and one that has not are told so, since they cannot understand each other; the first byte says
// which of them this is.
Result<bool> Door::HearKnock(Guest& guest) {
  char first = 0;
  const ssize_t count = ::recv(guest.conduit.socket(), &first, 1, MSG_PEEK);
  if (count == 0) return Error{Code::kIo, "it left"};
  if (count < 0 && errno != EAGAIN && errno != EINTR) return Error{Code::kIo, std::strerror(errno)};
  if (count < 0) return false;
  if (guest.conduit.encrypted() ? BeginsHello(first) : BeginsTls(first)) {
    ++mismatched_;
    const std::string answer = guest.conduit.encrypted() ? WantsTls() : WantsNoTls();
    char heard[kHandshakeBytes];  // what is left unread would make the system throw our answer away
    (void)!::recv(guest.conduit.socket(), heard, sizeof heard, 0);
    (void)!::send(guest.conduit.socket(), answer.data(), answer.size(), MSG_NOSIGNAL);
    return Error{Code::kInvalid, "one of us has TLS, the other has not"};
  }
  guest.stage = guest.conduit.encrypted() ? Stage::kTls : Stage::kHello;
  return true;
}

Result<std::string> Door::Answer(Guest& guest, const std::function<std::string(int)>& wanted) {
  switch (guest.stage) {
    case Stage::kKnock:
    case Stage::kTls:
      break;
    case Stage::kHello:
      guest.stage = Stage::kProof;
      return guest.accepting.Challenge(guest.said);
    case Stage::kProof: {
      Accepting::Claim claim = TRY(guest.accepting.Proven(guest.said));
      if (claim.refusal.empty()) claim.refusal = wanted(claim.rank);
      if (claim.refusal.empty() && IsJoining(claim.rank))
        claim.refusal = Str("there is a rank ", claim.rank, " already");
      guest.stage = Stage::kJoined;
      guest.deadline = Deadline(clock_, 10 * kPatience);  // no stranger, and maybe on a busy machine
      guest.rank = claim.rank;
      guest.refused = !claim.refusal.empty();
      guest.home = std::move(claim.home);
      Offer offer;
      const bool near = guest.home.boot == settings_.home.boot && !guest.home.boot.empty();
      if (claim.refusal.empty() && near && settings_.ring_bytes > 0) {
        const Nonce nonce = NewNonce();
        std::array<std::byte, 16> secret;
        std::copy_n(nonce.begin(), secret.size(), secret.begin());
        auto made = SharedMemory::Make(settings_.ring_bytes, secret);
        if (made.ok()) {
          guest.shared = std::move(made).value();
          offer = guest.shared->offer();
        }
      }
      return guest.accepting.Welcome(claim.refusal, settings_.home, offer);
    }
    case Stage::kJoined: {
      const bool shared = TRY(guest.accepting.Joined(guest.said));
      if (!shared) guest.shared.reset();
      if (guest.shared != nullptr) guest.shared->CloseDescriptor();
      guest.in = true;
      return std::string();
    }
  }
  return Error{Code::kInvalid, "no such stage"};
}

}  // namespace freshet::fabric::tcp
