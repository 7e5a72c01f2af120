#include "fabric/tcp/conduit.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include <functional>

#include "base/random.h"

namespace freshet::fabric::tcp {
namespace {

using Side = TlsSession::Side;

Token TokenOf(int number) {
  Token token;
  token.fill(static_cast<std::byte>(number));
  return token;
}

// Two ends of a connection, with somebody in between who carries the bytes and may change them.
class Pair {
 public:
  explicit Pair(int first_token = 1, int second_token = 1, std::uint64_t rekey_bytes = TlsKeys::kRekeyBytes) {
    one = Open(near_[0], first_token, rekey_bytes, Side::kDials);
    two = Open(near_[1], second_token, rekey_bytes, Side::kAccepts);
  }
  void Carry() {
    for (const std::size_t from : {0, 1}) {
      std::string& way = on_the_way_[from];
      std::byte bytes[20'000];
      const ssize_t count = ::recv(near_[from].get(), bytes, sizeof bytes, 0);
      const auto seen = std::span(bytes, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
      if (meddle) meddle(seen);
      way.append(reinterpret_cast<const char*>(bytes), seen.size());
      const ssize_t sent = ::send(near_[1 - from].get(), way.data(), way.size(), MSG_NOSIGNAL);
      if (sent <= 0) continue;
      carried += way.substr(0, static_cast<std::size_t>(sent));
      way.erase(0, static_cast<std::size_t>(sent));
    }
  }
  // Until both are sure of each other, or one has had enough.
  Result<bool> Meet() {
    for (int i = 0; i < 10; ++i) {
      auto first = one.Handshake(), second = two.Handshake();
      Carry();
      if (!second.ok()) {
        refusal = second.error().text;
        first = one.Handshake();
      }
      if (!first.ok()) return first;
      if (!second.ok()) return second;
      if (first.value() && second.value()) return true;
    }
    return false;
  }

  Conduit one, two;
  std::function<void(std::span<std::byte>)> meddle;
  std::string carried;
  std::string refusal;  // of the second

 private:
  static Conduit Open(base::Descriptor& near, int token, std::uint64_t rekey_bytes, Side side) {
    int ends[2];
    CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    near = base::Descriptor(ends[0]);
    return Conduit(base::Descriptor(ends[1]), TlsKeys::Make(TokenOf(token), rekey_bytes).value(), side);
  }
  base::Descriptor near_[2];
  std::string on_the_way_[2];
};

// What comes out when `bytes` are written in random cuts and read in random cuts.
Result<std::string> Through(Pair& pair, std::string bytes, std::uint64_t seed) {
  base::Random random(seed, "cuts");
  std::string received;
  std::size_t written = 0;
  for (int idle = 0; received.size() < bytes.size() && idle < 100; ++idle) {
    iovec parts[3];
    std::size_t at = written;
    for (iovec& part : parts) {
      const std::size_t most = random.Below(3) == 0 ? 100 : 60'000;
      const std::size_t count = std::min<std::size_t>(random.Below(most), bytes.size() - at);
      part = {bytes.data() + at, count};
      at += count;
    }
    written += TRY(pair.one.Write(parts));
    pair.Carry();
    std::string into(1 + random.Below(40'000), '\0'), more(1 + random.Below(20'000), '\0');
    const iovec rooms[] = {{into.data(), into.size()}, {more.data(), more.size()}};
    const std::size_t got = TRY(pair.two.Read(rooms));
    received += (into + more).substr(0, got);
    if (got > 0) idle = 0;
  }
  return received;
}

std::string RandomBytes(std::uint64_t seed, std::size_t count) {
  base::Random random(seed, "bytes");
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.Next());
  return bytes;
}

TEST(ConduitUnderTls, CarriesBytesHoweverTheyAreCut) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    Pair pair(1, 1, seed % 2 == 0 ? TlsKeys::kRekeyBytes : 50'000);  // and however often keys change
    const auto met = pair.Meet();
    ASSERT_TRUE(met.ok() && met.value()) << met.error().text;
    const std::string bytes = RandomBytes(seed, 300'000);
    const auto received = Through(pair, bytes, seed);
    ASSERT_TRUE(received.ok()) << received.error().text;
    EXPECT_TRUE(received.value() == bytes);
    EXPECT_FALSE(pair.two.unread());
  }
}

TEST(ConduitUnderTls, NothingThatIsSaidCanBeReadOnTheWay) {
  Pair pair;
  ASSERT_TRUE(pair.Meet().value());
  EXPECT_TRUE(Through(pair, std::string(5000, 'x'), 1).ok());
  EXPECT_EQ(pair.carried.find("xxxx"), std::string::npos);
  EXPECT_GT(pair.one.bytes_sent(), 5000u);
}

TEST(ConduitUnderTls, WhoHasAnotherTokenIsRefusedByBothSides) {
  Pair pair(1, 2);
  const auto met = pair.Meet();
  ASSERT_FALSE(met.ok());
  EXPECT_EQ(met.error().code, Code::kInvalid);
  EXPECT_NE(met.error().text.find("another job token"), std::string::npos) << met.error().text;
  EXPECT_NE(pair.refusal, "");
}

TEST(ConduitUnderTls, AChangedByteEndsIt) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    Pair pair;
    base::Random random(seed, "changes");
    std::size_t left = 1 + random.Below(6000);
    pair.meddle = [&](std::span<std::byte> bytes) {
      if (left > 0 && left <= bytes.size()) bytes[left - 1] ^= std::byte{1} << random.Below(8);
      left -= std::min(left, bytes.size());
    };
    const auto met = pair.Meet();
    const std::string bytes = RandomBytes(seed, 6000);
    if (!met.ok() || !met.value()) continue;
    const auto received = Through(pair, bytes, seed);
    EXPECT_FALSE(received.ok() && received.value() == bytes);
  }
}

// A listener of TLS 1.3 with a certificate that it signed itself, or a dialer that asks for no certificate at all.
class Impostor {
 public:
  Impostor(int socket, bool listens) : context_(SSL_CTX_new(TLS_method()), SSL_CTX_free), ssl_(nullptr, SSL_free) {
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), X509_free);
    X509_set_pubkey(certificate.get(), key.get());
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -1000);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 1000);
    CHECK(X509_sign(certificate.get(), key.get(), EVP_sha256()) > 0);
    CHECK(SSL_CTX_use_certificate(context_.get(), certificate.get()) == 1);
    CHECK(SSL_CTX_use_PrivateKey(context_.get(), key.get()) == 1);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), socket);
    listens ? SSL_set_accept_state(ssl_.get()) : SSL_set_connect_state(ssl_.get());
  }
  void Turn() { SSL_do_handshake(ssl_.get()); }

 private:
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
};

TEST(ConduitUnderTls, WhoHasACertificateInPlaceOfTheTokenIsNotBelieved) {
  for (const bool listens : {true, false}) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    const base::Descriptor near(ends[0]);
    Impostor impostor(ends[0], listens);
    Conduit conduit(base::Descriptor(ends[1]), TlsKeys::Make(TokenOf(1)).value(),
                    listens ? Side::kDials : Side::kAccepts);
    Result<bool> met = false;
    for (int i = 0; i < 5 && met.ok(); ++i) {
      met = conduit.Handshake();
      ASSERT_FALSE(met.ok() && met.value());
      impostor.Turn();
    }
    EXPECT_FALSE(met.ok());
  }
}

TEST(ConduitUnderTls, GarbageIsRefused) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    const base::Descriptor stranger(ends[0]);
    Conduit conduit(base::Descriptor(ends[1]), TlsKeys::Make(TokenOf(1)).value(), Side::kAccepts);
    std::string bytes = RandomBytes(seed, 20'000);
    if (seed % 2 == 0) bytes.replace(0, 3, "\x16\x03\x01");
    ASSERT_GT(::send(ends[0], bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
    const auto met = conduit.Handshake();
    EXPECT_FALSE(met.ok() && met.value()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace freshet::fabric::tcp
