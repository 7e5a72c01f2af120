#pragma once

#include <openssl/ssl.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "fabric/tcp/options.h"

namespace freshet::fabric::tcp {

// What all of a member's connections under TLS share: 1.3 alone, and no certificates. Both sides derive a key from the
// job's token and use it, as an external pre-shared key, together with a fresh Diffie-Hellman exchange. So who lacks
// the token gets nowhere, and who learns it later cannot read what was recorded before.
//
// Threads: constant after construction.
class TlsKeys {
 public:
  // After so many bytes a connection takes a new key: AES-GCM wears out after some 400 GB.
  static constexpr std::uint64_t kRekeyBytes = std::uint64_t{1} << 35;

  static Result<std::shared_ptr<const TlsKeys>> Make(const Token& token, std::uint64_t rekey_bytes = kRekeyBytes);
  ~TlsKeys();
  TlsKeys(const TlsKeys&) = delete;
  TlsKeys& operator=(const TlsKeys&) = delete;

 private:
  friend class TlsSession;
  TlsKeys() = default;
  static int Offer(SSL* ssl, const EVP_MD* digest, const unsigned char** name, std::size_t* name_bytes,
                   SSL_SESSION** session);
  static int Find(SSL* ssl, const unsigned char* name, std::size_t name_bytes, SSL_SESSION** session);
  SSL_SESSION* Session(SSL* ssl) const;

  std::array<unsigned char, 32> key_{};
  std::uint64_t rekey_bytes_ = 0;
  SSL_CTX* context_ = nullptr;
  BIO_METHOD* method_ = nullptr;
};

// One connection's TLS, from bytes to bytes: it touches no socket. What came from the other side is put into Room() and
// Filled; what is to go there lies in outgoing() until Sent.
//
// Threads:   one at a time.
// Failure:   final; what then lies in outgoing() tells the other side.
class TlsSession {
 public:
  static constexpr std::size_t kRecordBytes = 16 * 1024;  // the most that is sealed at once

  enum class Side { kDials, kAccepts };
  TlsSession(std::shared_ptr<const TlsKeys> keys, Side side);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // Goes as far as it can with what came; true when both sides have proven that they have the token.
  Result<bool> Handshake();
  Result<void> Encrypt(std::span<const std::byte> bytes);
  Result<std::size_t> Decrypt(std::span<std::byte> into);  // 0: more has to come first

  // At least so many bytes of room; only when nothing is unread.
  std::span<std::byte> Room(std::size_t bytes);
  void Filled(std::size_t bytes) { in_end_ = bytes; }
  bool unread() const { return in_begin_ < in_end_ || SSL_pending(ssl_) > 0; }

  std::span<const std::byte> outgoing() const { return std::span(out_).subspan(out_begin_); }
  void Sent(std::size_t bytes);

 private:
  friend class TlsKeys;
  static int TakeIn(BIO* bio, char* into, int count);
  static int PutOut(BIO* bio, const char* bytes, int count);
  static long Control(BIO* bio, int command, long number, void* pointer);
  Error Failure(int outcome) const;

  const std::shared_ptr<const TlsKeys> keys_;
  const Side side_;
  SSL* ssl_ = nullptr;
  bool ready_ = false;
  std::uint64_t until_rekey_;
  std::vector<std::byte> in_, out_;
  std::size_t in_begin_ = 0, in_end_ = 0, out_begin_ = 0;
};

}  // namespace freshet::fabric::tcp
