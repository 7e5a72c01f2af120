#include "serve/http/tls.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <cstdio>

#include "base/scratch_testing.h"
#include "serve/http/testing.h"

namespace freshet::serve {
namespace {

// A certificate for "localhost" signed by its own key, and the key, in files.
struct TestCertificate {
  explicit TestCertificate(const base::ScratchDirectory& directory, const std::string& name = "server",
                           EVP_PKEY* pair = EVP_EC_gen("P-256"))
      : certificate(directory / (name + ".crt")), key(directory / (name + ".key")) {
    X509* x509 = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
    X509_gmtime_adj(X509_getm_notBefore(x509), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
    X509_set_pubkey(x509, pair);
    X509_NAME* subject = X509_get_subject_name(x509);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("localhost"), -1, -1,
                               0);
    X509_set_issuer_name(x509, subject);
    CHECK(X509_sign(x509, pair, EVP_sha256()) > 0);
    std::FILE* file = std::fopen(certificate.c_str(), "w");
    PEM_write_X509(file, x509);
    std::fclose(file);
    file = std::fopen(key.c_str(), "w");
    PEM_write_PrivateKey(file, pair, nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
    X509_free(x509);
    EVP_PKEY_free(pair);
  }
  const std::string certificate;
  const std::string key;
};

// A TLS client over a TestClient's socket.
class TlsClient {
 public:
  TlsClient(int port, int min_version, int max_version) : client_(port), context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_min_proto_version(context_.get(), min_version);
    SSL_CTX_set_max_proto_version(context_.get(), max_version);
    SSL_CTX_set_security_level(context_.get(), 0);  // lets it offer what the server must refuse
    session_.reset(SSL_new(context_.get()));
    SSL_set_fd(session_.get(), client_.socket());
  }
  void OfferOnly(const char* ciphers) { CHECK(SSL_set_cipher_list(session_.get(), ciphers) == 1); }
  bool Connect() { return SSL_connect(session_.get()) == 1; }
  std::string_view version() const { return SSL_get_version(session_.get()); }
  bool Send(std::string_view text) {
    return SSL_write(session_.get(), text.data(), static_cast<int>(text.size())) == static_cast<int>(text.size());
  }
  // Reads until what has come ends with `end`, or the connection has ended.
  std::string Receive(std::string_view end) {
    std::string text;
    char bytes[4096];
    while (!text.ends_with(end)) {
      const int got = SSL_read(session_.get(), bytes, sizeof bytes);
      if (got <= 0) break;
      text.append(bytes, static_cast<std::size_t>(got));
    }
    return text;
  }

 private:
  TestClient client_;
  std::unique_ptr<ssl_ctx_st, SslDelete> context_;
  SslSession session_;
};

class TlsTest : public testing::Test {
 protected:
  HttpOptions Options() const {
    HttpOptions options;
    options.certificate = files_.certificate;
    options.key = files_.key;
    return options;
  }
  base::ScratchDirectory directory_;
  TestCertificate files_{directory_};
};

TEST_F(TlsTest, ServesOneRequestAfterTheOther) {
  TestServer server(Echo, Options());
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient client(server.port(), version, version);
    ASSERT_TRUE(client.Connect());
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(client.Send(Post("/a", Str("body", i, ";"))));
      EXPECT_NE(client.Receive(";").find(Str("POST /a  body", i, ";")), std::string::npos);
    }
  }
}

TEST_F(TlsTest, PrefersTheNewestVersionAndRefusesOldOnes) {
  TestServer server(Echo, Options());
  TlsClient any(server.port(), TLS1_2_VERSION, 0);
  ASSERT_TRUE(any.Connect());
  EXPECT_EQ(any.version(), "TLSv1.3");
  TlsClient old(server.port(), TLS1_VERSION, TLS1_1_VERSION);
  EXPECT_FALSE(old.Connect());
}

TEST_F(TlsTest, AgreesOnlyOnCiphersWithForwardSecrecy) {
  const TestCertificate rsa(directory_, "rsa", EVP_RSA_gen(2048));
  HttpOptions options = Options();
  options.certificate = rsa.certificate;
  options.key = rsa.key;
  TestServer server(Echo, options);
  for (const char* const ciphers : {"kRSA", "AES128-GCM-SHA256", "AES256-SHA"}) {
    TlsClient recordable(server.port(), TLS1_2_VERSION, TLS1_2_VERSION);
    recordable.OfferOnly(ciphers);
    EXPECT_FALSE(recordable.Connect()) << ciphers;
  }
  for (const char* const ciphers : {"ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-CHACHA20-POLY1305", "DEFAULT"}) {
    TlsClient secret(server.port(), TLS1_2_VERSION, TLS1_2_VERSION);
    secret.OfferOnly(ciphers);
    EXPECT_TRUE(secret.Connect()) << ciphers;
  }
}

TEST_F(TlsTest, CarriesLargeBodiesBothWays) {
  TestServer server([](Exchange exchange) { exchange.Send({.body = std::string(exchange.request().body)}); },
                    Options());
  TlsClient client(server.port(), TLS1_2_VERSION, 0);
  ASSERT_TRUE(client.Connect());
  const std::string body = std::string(3'000'000, 'x') + "end";
  ASSERT_TRUE(client.Send(Post("/", body)));
  const std::string answer = client.Receive("xend");
  EXPECT_EQ(answer.size() - answer.find("\r\n\r\n") - 4, body.size());
}

TEST_F(TlsTest, ClosesOnClientsThatSpeakSomethingElse) {
  TestServer server(Echo, Options());
  TestClient plain(server.port());
  plain.Send(Get("/"));
  EXPECT_EQ(plain.Rest().find("HTTP/1.1 200"), std::string::npos);
  HttpOptions impatient = Options();
  impatient.limits.header_timeout = std::chrono::milliseconds(200);
  TestServer strict(Echo, impatient);
  TestClient silent(strict.port());
  EXPECT_EQ(silent.Rest(), "");
}

TEST_F(TlsTest, RefusesFilesThatCannotBeUsed) {
  EXPECT_TRUE(TlsContext::Load(files_.certificate, files_.key).ok());
  EXPECT_EQ(TlsContext::Load(directory_ / "none", files_.key).error().code, Code::kNotFound);
  EXPECT_EQ(TlsContext::Load(files_.certificate, directory_ / "none").error().code, Code::kNotFound);
  EXPECT_EQ(TlsContext::Load(files_.key, files_.key).error().code, Code::kInvalid);
  const TestCertificate other(directory_, "other");
  EXPECT_EQ(TlsContext::Load(files_.certificate, other.key).error().code, Code::kInvalid);
}

}  // namespace
}  // namespace freshet::serve
