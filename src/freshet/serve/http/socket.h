#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "serve/http/tls.h"

namespace freshet::serve {

// What one attempt to move bytes gave. `blocked`: there is no more for now, the poller will say when there is.
// `gone`: the other side has ended, or the connection is broken.
struct Moved {
  std::size_t bytes = 0;
  bool blocked = false;
  bool gone = false;
};

// A connected, non-blocking socket, with TLS when it was given a session.
//
// Threads: one at a time. Ownership: owns descriptor and session.
class HttpSocket {
 public:
  HttpSocket(int descriptor, SslSession session) : descriptor_(descriptor), session_(std::move(session)) {}
  ~HttpSocket() { Close(); }
  HttpSocket(const HttpSocket&) = delete;
  HttpSocket& operator=(const HttpSocket&) = delete;

  int descriptor() const { return descriptor_; }
  bool tls() const { return session_ != nullptr; }

  Moved Read(std::span<char> into);
  Moved Write(std::string_view from);
  void EndWriting();  // tells the other side that no more will come
  void Close();

 private:
  Moved TlsOutcome(int result);

  int descriptor_;
  SslSession session_;
  bool broken_ = false;  // a TLS session that failed says nothing more, not even goodbye
};

}  // namespace freshet::serve
