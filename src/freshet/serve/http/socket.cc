#include "serve/http/socket.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace freshet::serve {
namespace {

int Clamped(std::size_t size) { return static_cast<int>(std::min<std::size_t>(size, INT_MAX)); }

Moved Outcome(ssize_t result, std::size_t wanted) {
  if (result >= 0) {
    const auto bytes = static_cast<std::size_t>(result);
    return {.bytes = bytes, .blocked = bytes < wanted};
  }
  if (errno == EAGAIN || errno == EINTR) return {.blocked = true};
  return {.gone = true};
}

}  // namespace

Moved HttpSocket::Read(std::span<char> into) {
  if (!session_) {
    const ssize_t got = ::recv(descriptor_, into.data(), into.size(), 0);
    return got == 0 ? Moved{.gone = true} : Outcome(got, into.size());
  }
  ERR_clear_error();
  return TlsOutcome(SSL_read(session_.get(), into.data(), Clamped(into.size())));
}

Moved HttpSocket::Write(std::string_view from) {
  if (!session_) return Outcome(::send(descriptor_, from.data(), from.size(), MSG_NOSIGNAL), from.size());
  ERR_clear_error();
  return TlsOutcome(SSL_write(session_.get(), from.data(), Clamped(from.size())));
}

// A session may hold more than it handed out, so only its own word counts for being blocked.
Moved HttpSocket::TlsOutcome(int result) {
  if (result > 0) return {.bytes = static_cast<std::size_t>(result)};
  const int error = SSL_get_error(session_.get(), result);
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return {.blocked = true};
  broken_ = error != SSL_ERROR_ZERO_RETURN;
  ERR_clear_error();
  return {.gone = true};
}

void HttpSocket::EndWriting() {
  if (session_ && !broken_ && SSL_is_init_finished(session_.get())) {
    ERR_clear_error();
    SSL_shutdown(session_.get());
    ERR_clear_error();
  }
  ::shutdown(descriptor_, SHUT_WR);
}

void HttpSocket::Close() {
  if (descriptor_ < 0) return;
  if (session_) EndWriting();
  session_.reset();
  ::close(descriptor_);
  descriptor_ = -1;
}

}  // namespace freshet::serve
