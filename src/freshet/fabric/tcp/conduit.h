#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "base/descriptor.h"
#include "base/result.h"
#include "fabric/tcp/tls.h"

namespace freshet::fabric::tcp {

// What two members say to each other: the bytes of a connected socket, as they are or under TLS.
//
// Threads:   one at a time.
// Blocking:  never; the socket does not block.
// Failure:   kIo when the other side closed or the connection broke; under TLS also kCorrupt when bytes were changed on
//            the way, and kInvalid when the other side has not our token.
class Conduit {
 public:
  Conduit() = default;
  explicit Conduit(base::Descriptor socket) : socket_(std::move(socket)) {}
  Conduit(base::Descriptor socket, std::shared_ptr<const TlsKeys> keys, TlsSession::Side side);

  int socket() const { return socket_.get(); }
  bool open() const { return socket_.open(); }
  bool encrypted() const { return tls_ != nullptr; }
  void Close() { socket_.Close(); }

  // Before anything is said: true when the other side has proven itself, at once without TLS. False: when the socket
  // has something to read, again.
  Result<bool> Handshake();
  // The bytes taken of these parts, in their order; fewer than all when the socket is full. What was taken may still
  // be unwritten: then writing again, be it nothing, goes on with that.
  Result<std::size_t> Write(std::span<const iovec> parts);
  bool unwritten() const { return tls_ != nullptr && !tls_->outgoing().empty(); }
  // The bytes put into these parts, which are not empty; 0 when nothing is there.
  Result<std::size_t> Read(std::span<const iovec> parts);
  // Bytes were taken from the socket that Read has not given yet; the socket does not tell of them.
  bool unread() const { return tls_ != nullptr && tls_->unread(); }

  std::uint64_t bytes_sent() const { return bytes_sent_; }  // as they travel

 private:
  Result<bool> Drain();                    // true when nothing is left
  Result<bool> Refill(std::size_t bytes);  // false: nothing there
  Result<std::size_t> Encrypt(std::span<const iovec> parts, std::size_t skip);
  Result<std::size_t> Decrypt(std::span<const iovec> parts);

  base::Descriptor socket_;
  std::unique_ptr<TlsSession> tls_;
  std::uint64_t bytes_sent_ = 0;
};

}  // namespace freshet::fabric::tcp
