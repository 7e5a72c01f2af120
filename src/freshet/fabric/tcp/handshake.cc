#include "fabric/tcp/handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <span>

#include "base/check.h"
#include "base/option.h"
#include "fabric/tcp/wire.h"

namespace freshet::fabric::tcp {
namespace {

constexpr std::string_view kMagic = "FRSHTCP1";
constexpr std::string_view kTlsWanted = "FRSHTLS1";  // in place of a challenge
constexpr char kTlsHandshake = 0x16;                 // the first byte of TLS
constexpr std::size_t kMacBytes = 32;
constexpr std::string_view kChallenged = "freshet tcp challenge", kProven = "freshet tcp proof",
                           kWelcomed = "freshet tcp welcome", kJoined = "freshet tcp joined",
                           kPosted = "freshet tcp post";

template <std::size_t N>
std::string_view TextOf(const std::array<std::byte, N>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), N};
}

std::string Digest(std::string_view text) {
  std::string digest(kMacBytes, '\0');
  unsigned size = 0;
  CHECK(EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(digest.data()), &size, EVP_sha256(),
                   nullptr) == 1);
  return digest;
}

std::string Mac(const Token& token, std::string_view label, std::string_view said, std::string_view body) {
  std::string message;
  PutText(message, label);
  PutText(message, said);
  PutText(message, body);
  std::string mac(kMacBytes, '\0');
  unsigned size = 0;
  CHECK(HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()),
             reinterpret_cast<const unsigned char*>(message.data()), message.size(),
             reinterpret_cast<unsigned char*>(mac.data()), &size) != nullptr);
  return mac;
}

bool SameMac(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

// Puts a body under its MAC, and remembers it as said.
std::string Seal(const Token& token, std::string_view label, std::string& said, std::string_view body) {
  CHECK(body.size() <= kBodyBytes);
  std::string sealed;
  PutNumber(sealed, static_cast<std::uint32_t>(body.size()));
  sealed += Mac(token, label, said, body);
  sealed += body;
  said += sealed;
  return sealed;
}

Result<std::string_view> Unseal(const Token& token, std::string_view label, std::string& said,
                                std::string_view sealed) {
  const std::size_t size = TRY(SealedBytes(sealed));
  if (sealed.size() != kSealBytes + size) return Error{Code::kBadInput, "a sealed message has another length"};
  const std::string_view body = sealed.substr(kSealBytes);
  if (!SameMac(sealed.substr(4, kMacBytes), Mac(token, label, said, body)))
    return Error{Code::kBadInput, "a message was not sealed by our job token"};
  said += sealed;
  return body;
}

void PutHome(std::string& out, const Home& home) {
  PutText(out, home.host);
  PutText(out, home.boot);
  PutText(out, home.address);
  PutNumber(out, static_cast<std::uint32_t>(home.port));
}

Home TakeHome(WireReader& reader) {
  Home home;
  home.host = reader.Text();
  home.boot = reader.Text();
  home.address = reader.Text();
  home.port = static_cast<int>(reader.Number<std::uint32_t>() & 0xffff);
  return home;
}

}  // namespace

Result<std::size_t> SealedBytes(std::string_view start) {
  WireReader reader(start.substr(0, kSealBytes));
  const std::size_t size = reader.Number<std::uint32_t>();
  if (start.size() < kSealBytes || size > kBodyBytes)
    return Error{Code::kBadInput, Str("a sealed message promises ", size, " bytes, it may have ", kBodyBytes)};
  return size;
}

std::string WantsTls() {
  std::string refusal(kTlsWanted);
  refusal.resize(kChallengeBytes);
  return refusal;
}

// A fatal alert, "insufficient security".
std::string WantsNoTls() { return {0x15, 3, 3, 0, 2, 2, 71}; }

bool BeginsTls(char first) { return first == kTlsHandshake; }
bool BeginsHello(char first) { return first == kMagic[0]; }

std::string SealLetter(const Token& token, std::string_view job, const Nonce& nonce, std::string_view letter) {
  CHECK(letter.size() <= kLetterBytes);
  std::string sealed;
  PutNumber(sealed, static_cast<std::uint32_t>(letter.size()));
  sealed += Mac(token, kPosted, Str(job, TextOf(nonce)), letter);
  sealed += letter;
  return sealed;
}

Result<std::size_t> LetterBytes(std::string_view start) {
  WireReader reader(start);
  const std::size_t bytes = reader.Number<std::uint32_t>();
  if (!reader.ok() || bytes > kLetterBytes) return Error{Code::kBadInput, Str("a letter of ", bytes, " bytes")};
  return bytes;
}

Result<std::string> OpenLetter(const Token& token, std::string_view job, const Nonce& nonce, std::string_view sealed) {
  const std::size_t size = TRY(LetterBytes(sealed));
  if (sealed.size() != kSealBytes + size) return Error{Code::kBadInput, "a sealed letter has another length"};
  const std::string_view letter = sealed.substr(kSealBytes);
  if (!SameMac(sealed.substr(4, kMacBytes), Mac(token, kPosted, Str(job, TextOf(nonce)), letter)))
    return Error{Code::kBadInput, "a letter was not sealed by our job token, for this moment"};
  return std::string(letter);
}

std::string Dialing::Hello() {
  std::string hello(kMagic);
  PutNumber(hello, static_cast<std::uint32_t>(badge_.rank));
  PutNumber(hello, static_cast<std::uint32_t>(to_));
  PutNumber(hello, static_cast<std::uint32_t>(badge_.size));
  PutNumber(hello, std::uint32_t{0});
  PutNumber(hello, badge_.generation);
  hello += Digest(badge_.job);
  hello += TextOf(nonce_);
  CHECK(hello.size() == kHelloBytes);
  said_ = hello;
  return hello;
}

Result<std::string> Dialing::Prove(std::string_view challenge, const Home& mine) {
  if (challenge.starts_with(kTlsWanted))
    return Error{Code::kInvalid,
                 Str("it works with TLS and we without it; give ", Option("tls"), " to all members, or to none")};
  WireReader reader(challenge);
  const bool magic = reader.Raw(kMagic.size()) == kMagic;
  const auto rank = reader.Number<std::uint32_t>();
  reader.Number<std::uint32_t>();
  reader.Raw(nonce_.size());
  const std::string_view mac = reader.Raw(kMacBytes);
  if (!magic || !reader.AtEnd()) return Error{Code::kInvalid, "what listens there is no member of a Freshet job"};
  const std::string_view open = challenge.substr(0, kChallengeBytes - kMacBytes);
  if (!SameMac(mac, Mac(badge_.token, kChallenged, said_, open)))
    return Error{Code::kInvalid, "it has another job token; start all members with the same token file"};
  if (rank != static_cast<std::uint32_t>(to_))
    return Error{Code::kInvalid, Str("it is rank ", rank, ", not rank ", to_)};
  said_ += challenge;
  std::string body;
  PutHome(body, mine);
  return Seal(badge_.token, kProven, said_, body);
}

Result<Dialing::Welcome> Dialing::Welcomed(std::string_view sealed) {
  WireReader reader(TRY(Unseal(badge_.token, kWelcomed, said_, sealed)));
  const std::string refusal = reader.Text();
  Welcome welcome;
  welcome.home = TakeHome(reader);
  welcome.offer.bytes = reader.Number<std::uint64_t>();
  welcome.offer.process = static_cast<int>(reader.Number<std::uint32_t>());
  welcome.offer.descriptor = static_cast<int>(reader.Number<std::uint32_t>());
  const std::string_view secret = reader.Raw(welcome.offer.secret.size());
  if (!reader.AtEnd()) return Error{Code::kBadInput, "a welcome is malformed"};
  std::memcpy(welcome.offer.secret.data(), secret.data(), secret.size());
  if (!refusal.empty()) return Error{Code::kInvalid, refusal};
  return welcome;
}

std::string Dialing::Join(bool shared) {
  return Seal(badge_.token, kJoined, said_, std::string_view(shared ? "\1" : "\0", 1));
}

Result<std::string> Accepting::Challenge(std::string_view hello) {
  if (hello.size() != kHelloBytes || !hello.starts_with(kMagic))
    return Error{Code::kBadInput, "what came is no hello of ours"};
  said_ = hello;
  std::string challenge(kMagic);
  PutNumber(challenge, static_cast<std::uint32_t>(badge_.rank));
  PutNumber(challenge, std::uint32_t{0});
  challenge += TextOf(nonce_);
  challenge += Mac(badge_.token, kChallenged, said_, challenge);
  CHECK(challenge.size() == kChallengeBytes);
  said_ += challenge;
  return challenge;
}

// Only now, when it is known to hold the token, may the other side learn what is wrong with it.
Result<Accepting::Claim> Accepting::Proven(std::string_view sealed) {
  WireReader hello(std::string_view(said_).substr(kMagic.size(), kHelloBytes - kMagic.size()));
  const auto from = hello.Number<std::uint32_t>(), to = hello.Number<std::uint32_t>(),
             size = hello.Number<std::uint32_t>();
  hello.Number<std::uint32_t>();
  const auto generation = hello.Number<std::uint64_t>();
  const bool same_job = hello.Raw(kMacBytes) == Digest(badge_.job);
  Claim claim;
  if (!same_job) {
    claim.refusal = Str("it belongs to the job ", Quoted(badge_.job), ", not to yours");
  } else if (generation != badge_.generation) {
    claim.refusal = Str("the group is at generation ", badge_.generation, ", you are of ", generation);
  } else if (size != static_cast<std::uint32_t>(badge_.size)) {
    claim.refusal = Str("the group has ", badge_.size, " members, you expect ", size);
  } else if (to != static_cast<std::uint32_t>(badge_.rank)) {
    claim.refusal = Str("it is rank ", badge_.rank, ", you want rank ", to);
  } else if (from >= size || from == to) {
    claim.refusal = Str("rank ", from, " cannot join here");
  } else {
    claim.rank = static_cast<int>(from);
  }
  WireReader body(TRY(Unseal(badge_.token, kProven, said_, sealed)));
  claim.home = TakeHome(body);
  if (!body.AtEnd()) return Error{Code::kBadInput, "a proof is malformed"};
  return claim;
}

std::string Accepting::Welcome(std::string_view refusal, const Home& mine, const Offer& offer) {
  std::string body;
  PutText(body, refusal.substr(0, 400));
  PutHome(body, mine);
  PutNumber(body, offer.bytes);
  PutNumber(body, static_cast<std::uint32_t>(offer.process));
  PutNumber(body, static_cast<std::uint32_t>(offer.descriptor));
  body += TextOf(offer.secret);
  return Seal(badge_.token, kWelcomed, said_, body);
}

Result<bool> Accepting::Joined(std::string_view sealed) {
  const std::string_view body = TRY(Unseal(badge_.token, kJoined, said_, sealed));
  if (body.size() != 1) return Error{Code::kBadInput, "the end of a handshake is malformed"};
  return body[0] == '\1';
}

}  // namespace freshet::fabric::tcp
