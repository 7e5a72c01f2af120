#include "fabric/tcp/conduit.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace freshet::fabric::tcp {
namespace {

constexpr std::size_t kBatchBytes = 128 * 1024;  // encrypted, then written: stays in the cache
constexpr std::size_t kLeastRoom = 4096;         // enough for a handshake

Error Broken() { return {Code::kIo, Str("the connection broke: ", std::strerror(errno))}; }
bool NotNow() { return errno == EAGAIN || errno == EINTR; }

std::size_t SizeOf(std::span<const iovec> parts) {
  std::size_t bytes = 0;
  for (const iovec& part : parts) bytes += part.iov_len;
  return bytes;
}

// One call of the system; 0: the socket is full.
Result<std::size_t> SendOnce(int socket, std::span<const iovec> parts) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (NotNow()) return std::size_t{0};
  return Broken();
}

Result<std::size_t> ReceiveOnce(int socket, std::span<const iovec> parts) {
  const ssize_t count = ::readv(socket, parts.data(), static_cast<int>(parts.size()));
  if (count > 0) return static_cast<std::size_t>(count);
  if (count == 0) return Error{Code::kIo, "it closed the connection"};
  if (NotNow()) return std::size_t{0};
  return Broken();
}

}  // namespace

Conduit::Conduit(base::Descriptor socket, std::shared_ptr<const TlsKeys> keys, TlsSession::Side side)
    : socket_(std::move(socket)), tls_(keys ? std::make_unique<TlsSession>(std::move(keys), side) : nullptr) {}

Result<bool> Conduit::Handshake() {
  while (tls_ != nullptr) {
    Result<bool> done = tls_->Handshake();
    const Result<bool> drained = Drain();  // whatever happened, since it may tell the other side what is wrong
    if (!done.ok()) return done;
    TRY(drained);
    if (done.value()) return true;
    if (!TRY(Refill(kLeastRoom))) return false;
  }
  return true;
}

Result<std::size_t> Conduit::Write(std::span<const iovec> parts) {
  if (tls_ == nullptr) {
    const std::size_t sent = TRY(SendOnce(socket_.get(), parts));
    bytes_sent_ += sent;
    return sent;
  }
  const std::size_t total = SizeOf(parts);
  std::size_t taken = 0;
  while (TRY(Drain()) && taken < total) taken += TRY(Encrypt(parts, taken));
  return taken;
}

Result<bool> Conduit::Drain() {
  while (unwritten()) {
    const auto bytes = tls_->outgoing();
    const iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    const std::size_t sent = TRY(SendOnce(socket_.get(), {&part, 1}));
    if (sent == 0) return false;
    bytes_sent_ += sent;
    tls_->Sent(sent);
  }
  return true;
}

// The next batch of parts, after the first `skip` bytes. Long parts are sealed where they lie, short ones (headers, and
// what follows them) are gathered first, since every record costs its share.
Result<std::size_t> Conduit::Encrypt(std::span<const iovec> parts, std::size_t skip) {
  std::byte gathered[TlsSession::kRecordBytes];
  std::size_t count = 0, taken = 0;
  for (const iovec& part : parts) {
    std::span rest(static_cast<const std::byte*>(part.iov_base), part.iov_len);
    rest = rest.subspan(std::min(skip, rest.size()));
    skip -= part.iov_len - rest.size();
    rest = rest.first(std::min(rest.size(), kBatchBytes - taken));
    taken += rest.size();
    while (!rest.empty()) {
      const bool whole = count == 0 && rest.size() >= sizeof gathered;
      const std::size_t now =
          whole ? rest.size() / sizeof gathered * sizeof gathered : std::min(rest.size(), sizeof gathered - count);
      if (whole) {
        TRY(tls_->Encrypt(rest.first(now)));
      } else {
        std::memcpy(gathered + count, rest.data(), now);
        count += now;
      }
      rest = rest.subspan(now);
      if (count == sizeof gathered) TRY(tls_->Encrypt(std::span(gathered, std::exchange(count, 0))));
    }
    if (taken == kBatchBytes) break;
  }
  if (count > 0) TRY(tls_->Encrypt(std::span(gathered, count)));
  return taken;
}

Result<std::size_t> Conduit::Read(std::span<const iovec> parts) {
  if (tls_ == nullptr) return ReceiveOnce(socket_.get(), parts);
  while (true) {
    const std::size_t count = TRY(Decrypt(parts));
    if (count > 0 || !TRY(Refill(std::clamp(SizeOf(parts), kLeastRoom, 2 * kBatchBytes)))) return count;
  }
}

// As much as there is of what came before.
Result<std::size_t> Conduit::Decrypt(std::span<const iovec> parts) {
  std::size_t total = 0;
  for (const iovec& part : parts) {
    std::span rest(static_cast<std::byte*>(part.iov_base), part.iov_len);
    while (!rest.empty()) {
      const std::size_t count = TRY(tls_->Decrypt(rest));
      if (count == 0) return total;
      rest = rest.subspan(count);
      total += count;
    }
  }
  return total;
}

Result<bool> Conduit::Refill(std::size_t bytes) {
  const std::span<std::byte> room = tls_->Room(bytes);
  const iovec part{room.data(), room.size()};
  const std::size_t count = TRY(ReceiveOnce(socket_.get(), {&part, 1}));
  tls_->Filled(count);
  return count > 0;
}

}  // namespace freshet::fabric::tcp
