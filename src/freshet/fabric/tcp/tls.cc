#include "fabric/tcp/tls.h"

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/option.h"

namespace freshet::fabric::tcp {
namespace {

constexpr std::string_view kName = "freshet tcp 1";  // of the key; it travels in the clear and is no secret
constexpr std::string_view kPurpose = "freshet tcp tls 1.3 psk";
constexpr char kSuite[] = "TLS_AES_128_GCM_SHA256";
constexpr unsigned char kSuiteId[] = {0x13, 0x01};

// The last reason OpenSSL has, in its words.
std::string LastReason() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason != nullptr ? reason : "no reason given";
}

bool Derive(const Token& token, std::span<unsigned char> key) {
  const std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)> hkdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr), EVP_KDF_free);
  const std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> context(EVP_KDF_CTX_new(hkdf.get()),
                                                                          EVP_KDF_CTX_free);
  if (context == nullptr) return false;
  char digest[] = "SHA256";
  std::string purpose(kPurpose);
  Token secret = token;
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
                                   OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, secret.data(), secret.size()),
                                   OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, &purpose[0], purpose.size()),
                                   OSSL_PARAM_construct_end()};
  const bool derived = EVP_KDF_derive(context.get(), key.data(), key.size(), parameters) == 1;
  OPENSSL_cleanse(secret.data(), secret.size());
  return derived;
}

}  // namespace

Result<std::shared_ptr<const TlsKeys>> TlsKeys::Make(const Token& token, std::uint64_t rekey_bytes) {
  ERR_clear_error();
  std::shared_ptr<TlsKeys> keys(new TlsKeys);
  keys->rekey_bytes_ = rekey_bytes;
  keys->context_ = SSL_CTX_new(TLS_method());
  keys->method_ = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "freshet");
  SSL_CTX* const context = keys->context_;
  const bool made = context != nullptr && keys->method_ != nullptr && Derive(token, keys->key_) &&
                    SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
                    SSL_CTX_set_ciphersuites(context, kSuite) == 1 && SSL_CTX_set_num_tickets(context, 0) == 1 &&
                    BIO_meth_set_read(keys->method_, TlsSession::TakeIn) == 1 &&
                    BIO_meth_set_write(keys->method_, TlsSession::PutOut) == 1 &&
                    BIO_meth_set_ctrl(keys->method_, TlsSession::Control) == 1;
  if (!made) return Error{Code::kIo, Str("OpenSSL cannot do TLS 1.3: ", LastReason())};
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_psk_use_session_callback(context, Offer);
  SSL_CTX_set_psk_find_session_callback(context, Find);
  return std::shared_ptr<const TlsKeys>(std::move(keys));
}

TlsKeys::~TlsKeys() {
  SSL_CTX_free(context_);
  BIO_meth_free(method_);
  OPENSSL_cleanse(key_.data(), key_.size());
}

// The key in the form in which OpenSSL wants it. Null when there is no memory, which ends the handshake.
SSL_SESSION* TlsKeys::Session(SSL* ssl) const {
  SSL_SESSION* const session = SSL_SESSION_new();
  const SSL_CIPHER* const cipher = SSL_CIPHER_find(ssl, kSuiteId);
  if (session != nullptr && cipher != nullptr && SSL_SESSION_set1_master_key(session, key_.data(), key_.size()) == 1 &&
      SSL_SESSION_set_cipher(session, cipher) == 1 && SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
    return session;
  SSL_SESSION_free(session);
  return nullptr;
}

int TlsKeys::Offer(SSL* ssl, const EVP_MD* digest, const unsigned char** name, std::size_t* name_bytes,
                   SSL_SESSION** session) {
  *session = nullptr;
  if (digest != nullptr && EVP_MD_is_a(digest, "SHA256") != 1) return 1;
  *session = static_cast<const TlsKeys*>(SSL_get_app_data(ssl))->Session(ssl);
  *name = reinterpret_cast<const unsigned char*>(kName.data());
  *name_bytes = kName.size();
  return *session != nullptr ? 1 : 0;
}

int TlsKeys::Find(SSL* ssl, const unsigned char* name, std::size_t name_bytes, SSL_SESSION** session) {
  *session = nullptr;
  if (std::string_view(reinterpret_cast<const char*>(name), name_bytes) != kName) return 1;
  *session = static_cast<const TlsKeys*>(SSL_get_app_data(ssl))->Session(ssl);
  return *session != nullptr ? 1 : 0;
}

TlsSession::TlsSession(std::shared_ptr<const TlsKeys> keys, Side side)
    : keys_(std::move(keys)), side_(side), ssl_(SSL_new(keys_->context_)), until_rekey_(keys_->rekey_bytes_) {
  BIO* const bio = BIO_new(keys_->method_);
  CHECK(ssl_ != nullptr);
  CHECK(bio != nullptr);
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio);
  SSL_set_app_data(ssl_, const_cast<TlsKeys*>(keys_.get()));
  if (side == Side::kDials) {
    SSL_set_connect_state(ssl_);
    SSL_set_verify(ssl_, SSL_VERIFY_PEER, nullptr);  // no certificate passes, since nobody is trusted to sign one
  } else {
    SSL_set_accept_state(ssl_);
  }
}

TlsSession::~TlsSession() { SSL_free(ssl_); }

int TlsSession::TakeIn(BIO* bio, char* into, int count) {
  auto& session = *static_cast<TlsSession*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const std::size_t taken = std::min(session.in_end_ - session.in_begin_, static_cast<std::size_t>(count));
  if (taken == 0) {
    BIO_set_retry_read(bio);
    return -1;
  }
  std::memcpy(into, session.in_.data() + session.in_begin_, taken);
  session.in_begin_ += taken;
  return static_cast<int>(taken);
}

int TlsSession::PutOut(BIO* bio, const char* bytes, int count) {
  auto& session = *static_cast<TlsSession*>(BIO_get_data(bio));
  const auto added = std::as_bytes(std::span(bytes, static_cast<std::size_t>(count)));
  session.out_.insert(session.out_.end(), added.begin(), added.end());
  return count;
}

long TlsSession::Control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

Result<bool> TlsSession::Handshake() {
  if (ready_) return true;
  ERR_clear_error();
  const int outcome = SSL_do_handshake(ssl_);
  if (outcome == 1 && SSL_session_reused(ssl_) != 1)
    return Error{Code::kInvalid, "it did not prove that it has the job token"};
  ready_ = outcome == 1;
  if (ready_ || SSL_get_error(ssl_, outcome) == SSL_ERROR_WANT_READ) return ready_;
  return Failure(outcome);
}

Result<void> TlsSession::Encrypt(std::span<const std::byte> bytes) {
  ERR_clear_error();
  if (until_rekey_ < bytes.size()) {
    if (SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED) != 1) return Failure(0);
    until_rekey_ = keys_->rekey_bytes_;
  }
  until_rekey_ -= std::min<std::uint64_t>(until_rekey_, bytes.size());
  std::size_t written = 0;
  const int outcome = SSL_write_ex(ssl_, bytes.data(), bytes.size(), &written);
  if (outcome != 1) return Failure(outcome);
  CHECK(written == bytes.size());  // what is written goes to memory, where there is always room
  return {};
}

Result<std::size_t> TlsSession::Decrypt(std::span<std::byte> into) {
  ERR_clear_error();
  std::size_t count = 0;
  const int outcome = SSL_read_ex(ssl_, into.data(), into.size(), &count);
  if (outcome == 1) return count;
  if (SSL_get_error(ssl_, outcome) == SSL_ERROR_WANT_READ) return std::size_t{0};
  return Failure(outcome);
}

Error TlsSession::Failure(int outcome) const {
  if (SSL_get_error(ssl_, outcome) == SSL_ERROR_ZERO_RETURN) return {Code::kIo, "it closed the connection"};
  const std::string reason = Str(" (TLS: ", LastReason(), ")");
  if (ready_) return {Code::kCorrupt, Str("what it sends was changed on the way", reason)};
  switch (ERR_GET_REASON(ERR_peek_last_error())) {
    case SSL_R_TLSV1_ALERT_INSUFFICIENT_SECURITY:
      return {Code::kInvalid,
              Str("it works without TLS and we with it; give ", Option("tls"), " to all members, or to none")};
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
      return {Code::kInvalid, Str("what listens there is no member of a Freshet job", reason)};
    default:
      return {Code::kInvalid, Str("it has another job token; start all members with the same token file", reason)};
  }
}

std::span<std::byte> TlsSession::Room(std::size_t bytes) {
  CHECK(in_begin_ == in_end_);
  in_begin_ = in_end_ = 0;
  if (in_.size() < bytes) in_.resize(bytes);
  return std::span(in_).first(bytes);
}

void TlsSession::Sent(std::size_t bytes) {
  out_begin_ += bytes;
  if (out_begin_ < out_.size()) return;
  out_.clear();
  out_begin_ = 0;
}

}  // namespace freshet::fabric::tcp
