#pragma once

#include <memory>
#include <string>

#include "base/result.h"

struct bio_method_st;
struct ssl_ctx_st;
struct ssl_st;

namespace freshet::serve {

struct SslDelete {
  void operator()(ssl_ctx_st* context) const;
  void operator()(bio_method_st* method) const;
  void operator()(ssl_st* session) const;
};
using SslSession = std::unique_ptr<ssl_st, SslDelete>;

// A certificate and its key, ready to greet clients with TLS 1.2 or 1.3, by ciphers with forward secrecy.
//
// Threads: any. Failure: Load: kNotFound, or kInvalid with OpenSSL's reason.
class TlsContext {
 public:
  static Result<std::unique_ptr<TlsContext>> Load(const std::string& certificate, const std::string& key);

  // The server's end of a session over a non-blocking socket, which stays the caller's. Nothing when memory is short.
  SslSession Accept(int socket) const;

 private:
  TlsContext();

  std::unique_ptr<ssl_ctx_st, SslDelete> context_;
  std::unique_ptr<bio_method_st, SslDelete> method_;  // how sessions reach their sockets; outlives them
};

}  // namespace freshet::serve
