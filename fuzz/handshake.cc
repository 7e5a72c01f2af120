#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "base/check.h"
#include "fabric/tcp/handshake.h"
#include "fabric/tcp/member_table.h"
#include "fabric/tcp/tls.h"
#include "fabric/tcp/wire.h"

namespace {

using namespace freshet;
using namespace freshet::fabric::tcp;

const Badge kFirst{.rank = 0, .size = 2, .job = "job", .token = {}, .generation = 0};
const Badge kSecond{.rank = 1, .size = 2, .job = "job", .token = {}, .generation = 0};

// As whoever holds the token seals a body, so that what is behind the seal is reached.
std::string Sealed(std::string_view label, std::string_view said, std::string_view body) {
  std::string message;
  PutText(message, label);
  PutText(message, said);
  PutText(message, body);
  unsigned char mac[32];
  unsigned size = 0;
  CHECK(HMAC(EVP_sha256(), kFirst.token.data(), static_cast<int>(kFirst.token.size()),
             reinterpret_cast<const unsigned char*>(message.data()), message.size(), mac, &size) != nullptr);
  std::string sealed;
  PutNumber(sealed, static_cast<std::uint32_t>(body.size()));
  sealed.append(reinterpret_cast<const char*>(mac), sizeof mac);
  sealed += body;
  return sealed;
}

// At every step of a handshake that went well so far: any bytes, which are never believed, and a sealed body of any
// bytes, of which the fields are.
void FeedHandshake(std::string_view bytes) {
  Nonce fresh;  // for which no file of the corpus has a MAC
  fresh.fill(std::byte{1});
  for (const bool sealed : {false, true}) {
    Dialing dialing(kSecond, 0, fresh);
    Accepting accepting(kFirst, fresh);
    std::string said = dialing.Hello();
    const std::string challenge = accepting.Challenge(said).value();
    said += challenge;
    const std::string proof = dialing.Prove(challenge, {"host", "boot", "127.0.0.1", 1}).value();
    const auto claim = accepting.Proven(sealed ? Sealed("freshet tcp proof", said, bytes) : std::string(bytes));
    CHECK(sealed || !claim.ok());
    if (claim.ok()) CHECK(claim.value().home.port >= 0 && claim.value().home.port <= 0xffff);
    said += proof;
    const auto welcome = dialing.Welcomed(sealed ? Sealed("freshet tcp welcome", said, bytes) : std::string(bytes));
    CHECK(sealed || !welcome.ok());
  }
  Accepting stranger(kFirst, fresh);
  if (stranger.Challenge(bytes.substr(0, kHelloBytes)).ok())
    CHECK(!stranger.Proven(bytes.substr(std::min(bytes.size(), kHelloBytes))).ok());
  Dialing dialing(kSecond, 0, fresh);
  dialing.Hello();
  CHECK(!dialing.Prove(bytes.substr(0, kChallengeBytes), {}).ok());
  const auto promised = SealedBytes(bytes);
  if (promised.ok()) CHECK(promised.value() <= kBodyBytes);
}

// As rank 0's list of members.
void FeedTable(std::string_view bytes) {
  for (std::size_t members = 1; members < 4; ++members) {
    const auto promised = TableBytes(bytes.substr(0, kTableHeadBytes), members);
    if (promised.ok()) CHECK(promised.value() <= 512 * members);
    const auto table = DecodeTable(bytes, members);
    if (!table.ok()) continue;
    CHECK(table.value().size() == members);
    CHECK(EncodeTable(table.value()).size() == kTableHeadBytes + bytes.size());
  }
}

// As the first words under TLS, of a dialer and of a listener.
void FeedTls(std::string_view bytes, const std::shared_ptr<const TlsKeys>& keys) {
  for (const auto side : {TlsSession::Side::kDials, TlsSession::Side::kAccepts}) {
    TlsSession session(keys, side);
    CHECK(!session.Handshake().value());
    std::memcpy(session.Room(bytes.size()).data(), bytes.data(), bytes.size());
    session.Filled(bytes.size());
    const auto met = session.Handshake();
    CHECK(!met.ok() || !met.value());
    CHECK(session.outgoing().size() < 10'000);
  }
}

}  // namespace

// Any bytes where a stranger, or a member that lies, makes itself known.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > 1000) return 0;
  static const std::shared_ptr<const TlsKeys> keys = TlsKeys::Make(kFirst.token).value();
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  FeedHandshake(bytes);
  FeedTable(bytes);
  FeedTls(bytes, keys);
  return 0;
}
