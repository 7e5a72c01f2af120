#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "fabric/tcp/options.h"

namespace freshet::fabric::tcp {

// How two members make sure of each other before anything else is said. The one who dials begins:
//
//   hello      dialer -> acceptor   96 bytes: version, both ranks, size, generation, digest of the job, a nonce
//   challenge  acceptor -> dialer   80 bytes: its rank, a nonce, and a MAC that proves it has the token
//   proof      dialer -> acceptor   sealed: where it runs and listens
//   welcome    acceptor -> dialer   sealed: a verdict, where it runs, shared memory on offer
//   joined     dialer -> acceptor   sealed: whether the shared memory was found
//
// Every MAC is HMAC-SHA256 by the token over a label of the step, all that was said before and the message, so that
// none can be replayed, reflected or moved to another pair, job or generation. Who has no token learns nothing but that
// somebody is there. Under TLS (tls.h) all of this happens inside, as it is. A message that carries a MAC and a length
// is *sealed*: u32 bytes of the body, MAC, body.
using Nonce = std::array<std::byte, 32>;

inline constexpr std::size_t kHelloBytes = 96;
inline constexpr std::size_t kChallengeBytes = 80;
inline constexpr std::size_t kSealBytes = 36;         // before the body of a sealed message
inline constexpr std::size_t kHandshakeBytes = 4096;  // the most a stranger can make us keep
inline constexpr std::size_t kBodyBytes = 1024;       // the longest body

// What is said to a member that came without TLS where it is wanted, or with it where it is not: each in the words that
// it understands.
std::string WantsTls();
std::string WantsNoTls();
// Of a caller's first byte, whether it begins TLS; and whether it is a member's hello without it.
bool BeginsTls(char first);
bool BeginsHello(char first);

// What a member is known by at a door: its rank, and the group it belongs to, whose token it holds.
struct Badge {
  int rank = 0;
  int size = 1;
  std::string job;
  Token token{};
  std::uint64_t generation = 0;
};

// Where a member is at home.
struct Home {
  std::string host;     // for people
  std::string boot;     // the same for processes that share a kernel
  std::string address;  // where it listens
  int port = 0;
};

// Memory a peer of the same host can open through /proc.
struct Offer {
  std::uint64_t bytes = 0;  // of one ring; 0: none
  int process = 0;
  int descriptor = 0;
  std::array<std::byte, 16> secret{};  // lies in the memory too, so that no other is taken for it
};

// The body's length a sealed message promises, from its first kSealBytes; kBadInput if it is too long.
Result<std::size_t> SealedBytes(std::string_view start);

// A letter outside of any group (post.h), sealed for the one who has drawn this nonce: it is taken once, by members of the
// job alone.
inline constexpr std::size_t kLetterBytes = 1 << 20;  // the longest
std::string SealLetter(const Token& token, std::string_view job, const Nonce& nonce, std::string_view letter);
// The body's length that a sealed letter promises, from its first kSealBytes; kBadInput if it is too long.
Result<std::size_t> LetterBytes(std::string_view start);
Result<std::string> OpenLetter(const Token& token, std::string_view job, const Nonce& nonce, std::string_view sealed);

// The side that dials. Each call takes what the other side said and gives what to answer.
class Dialing {
 public:
  struct Welcome {
    Home home;
    Offer offer;
  };
  Dialing(const Badge& badge, int to, const Nonce& nonce) : badge_(badge), to_(to), nonce_(nonce) {}

  std::string Hello();
  Result<std::string> Prove(std::string_view challenge, const Home& mine);
  // kInvalid with the other side's reason when it wants none of us.
  Result<Welcome> Welcomed(std::string_view sealed);
  std::string Join(bool shared);

 private:
  const Badge& badge_;
  const int to_;
  const Nonce nonce_;
  std::string said_;
};

// The side that is dialled.
class Accepting {
 public:
  struct Claim {
    int rank = 0;
    Home home;
    std::string refusal;  // why a holder of the token is not welcome all the same; empty: it is
  };
  Accepting(const Badge& badge, const Nonce& nonce) : badge_(badge), nonce_(nonce) {}

  Result<std::string> Challenge(std::string_view hello);
  Result<Claim> Proven(std::string_view sealed);
  std::string Welcome(std::string_view refusal, const Home& mine, const Offer& offer);
  Result<bool> Joined(std::string_view sealed);  // whether the shared memory was found

 private:
  const Badge& badge_;
  const Nonce nonce_;
  std::string said_;
};

}  // namespace freshet::fabric::tcp
