#include "base/secret_hash.h"

#include <sys/random.h>

#include <cstring>

#include "base/check.h"
#include "base/random.h"

namespace freshet::base {
namespace {

constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;
constexpr std::uint64_t kWord = (std::uint64_t{1} << 56) - 1;  // seven bytes at a time, below the prime

struct Secret {
  std::uint64_t point, mask;
};

const Secret& TheSecret() {
  static const Secret secret = {2 + Unguessable() % (kPrime - 2), Unguessable()};
  return secret;
}

// (sum + word) * point, nearly reduced: below 2^61 + 8 for a sum below that.
std::uint64_t Step(std::uint64_t sum, std::uint64_t word, std::uint64_t point) {
  const auto product = static_cast<unsigned __int128>(sum + word) * point;
  const std::uint64_t folded = static_cast<std::uint64_t>(product & kPrime) + static_cast<std::uint64_t>(product >> 61);
  return (folded & kPrime) + (folded >> 61);
}

}  // namespace

std::uint64_t Unguessable() {
  std::uint64_t bits = 0;
  CHECK(getrandom(&bits, sizeof bits, 0) == sizeof bits);  // never less for so few bytes
  return bits;
}

std::uint64_t SecretHash(std::string_view bytes) {
  const Secret& secret = TheSecret();
  std::uint64_t sum = bytes.size(), word = 0;
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= sizeof word; left -= 7, at += 7) {
    std::memcpy(&word, at, sizeof word);
    sum = Step(sum, word & kWord, secret.point);
  }
  word = 0;  // up to seven bytes are left
  std::memcpy(&word, at, left);
  return Hash64(Step(sum, word, secret.point) ^ secret.mask);
}

std::uint64_t SecretHash(std::uint64_t number) {
  const Secret& secret = TheSecret();
  const std::uint64_t sum = Step(number >> 32, 0, secret.point);
  return Hash64(Step(sum, number & 0xffffffff, secret.point) ^ secret.mask);
}

}  // namespace freshet::base
