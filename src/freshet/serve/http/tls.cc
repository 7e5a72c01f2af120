#include "serve/http/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace freshet::serve {
namespace {

// OpenSSL's own socket BIO writes without MSG_NOSIGNAL: a client that leaves at the wrong moment would kill the
// process.
int SocketOf(BIO* bio) { return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio))); }

int Finish(BIO* bio, ssize_t result, int retry) {
  BIO_clear_retry_flags(bio);
  if (result < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
  return static_cast<int>(result);
}

int WriteSocket(BIO* bio, const char* bytes, int size) {
  return Finish(bio, ::send(SocketOf(bio), bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL), BIO_FLAGS_WRITE);
}

int ReadSocket(BIO* bio, char* bytes, int size) {
  return Finish(bio, ::recv(SocketOf(bio), bytes, static_cast<std::size_t>(size), 0), BIO_FLAGS_READ);
}

long ControlSocket(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

BIO_METHOD* NewMethod() {
  BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "freshet socket");
  CHECK(method != nullptr);
  BIO_meth_set_write(method, WriteSocket);
  BIO_meth_set_read(method, ReadSocket);
  BIO_meth_set_ctrl(method, ControlSocket);
  return method;
}

// The newest reason OpenSSL has, in words.
std::string Reason() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* text = ERR_reason_error_string(code);
  return text != nullptr ? text : "unknown reason";
}

Error Unusable(std::string_view what, const std::string& path) {
  if (::access(path.c_str(), F_OK) != 0) return {Code::kNotFound, Str(what, " ", path, " does not exist")};
  return {Code::kInvalid, Str(what, " ", path, " cannot be used: ", Reason())};
}

}  // namespace

void SslDelete::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }
void SslDelete::operator()(bio_method_st* method) const { BIO_meth_free(method); }
void SslDelete::operator()(ssl_st* session) const { SSL_free(session); }

TlsContext::TlsContext() : context_(SSL_CTX_new(TLS_server_method())), method_(NewMethod()) {
  CHECK(context_ != nullptr);
  SSL_CTX* context = context_.get();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  // Forward secrecy only: who learns our key later cannot read what was recorded. (1.3 knows nothing else.)
  CHECK(SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  // We write what the socket takes and come back with the rest, which may have moved in memory.
  SSL_CTX_set_mode(context,
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  // An encrypted key is refused rather than asked about on the terminal.
  SSL_CTX_set_default_passwd_cb(context, [](char*, int, int, void*) { return 0; });
}

Result<std::unique_ptr<TlsContext>> TlsContext::Load(const std::string& certificate, const std::string& key) {
  std::unique_ptr<TlsContext> tls(new TlsContext);
  SSL_CTX* context = tls->context_.get();
  if (SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) != 1)
    return Unusable("certificate", certificate);
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1) return Unusable("key", key);
  if (SSL_CTX_check_private_key(context) != 1)
    return Error{Code::kInvalid, Str("key ", key, " does not belong to certificate ", certificate)};
  return tls;
}

SslSession TlsContext::Accept(int socket) const {
  SslSession session(SSL_new(context_.get()));
  BIO* bio = session ? BIO_new(method_.get()) : nullptr;
  if (bio == nullptr) return nullptr;
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(socket)));
  BIO_set_init(bio, 1);
  SSL_set_bio(session.get(), bio, bio);
  SSL_set_accept_state(session.get());
  return session;
}

}  // namespace freshet::serve
