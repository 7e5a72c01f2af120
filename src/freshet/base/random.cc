#include "base/random.h"

#include <cmath>
#include <cstring>
#include <numbers>

#include "base/check.h"

namespace freshet::base {

std::array<std::uint32_t, 4> Philox(std::uint64_t key, std::uint64_t high, std::uint64_t low) {
  constexpr std::uint64_t kM0 = 0xD2511F53, kM1 = 0xCD9E8D57;
  constexpr std::uint32_t kW0 = 0x9E3779B9, kW1 = 0xBB67AE85;
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  std::array<std::uint32_t, 4> c = {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32),
                                    static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(high >> 32)};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = kM0 * c[0], p1 = kM1 * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += kW0;
    k1 += kW1;
  }
  return c;
}

Random::Random(std::uint64_t seed, std::string_view stream) : Random(seed, Hash64(stream)) {}

std::uint64_t Random::Next() {
  // One block of the cipher gives two numbers; it is computed anew for the second, which keeps the state one integer.
  const auto block = Philox(seed_, stream_, position_ / 2);
  const std::size_t at = (position_++ % 2) * 2;
  return block[at] | std::uint64_t{block[at + 1]} << 32;
}

double Random::Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

std::uint64_t Random::Below(std::uint64_t end) {
  CHECK(end > 0);
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(Next()) * end) >> 64);
}

double Random::Normal() {
  const double radius = std::sqrt(-2 * std::log(1 - Uniform()));
  return radius * std::cos(2 * std::numbers::pi * Uniform());
}

std::uint64_t Hash64(std::uint64_t number) {  // the finaliser of splitmix64
  number += 0x9E3779B97F4A7C15;
  number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9;
  number = (number ^ (number >> 27)) * 0x94D049BB133111EB;
  return number ^ (number >> 31);
}

std::uint64_t Hash64(std::string_view bytes, std::uint64_t seed) {
  std::uint64_t hash = Hash64(seed ^ bytes.size());
  while (bytes.size() >= 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    hash = Hash64(hash ^ word);
    bytes.remove_prefix(8);
  }
  if (!bytes.empty()) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), bytes.size());
    hash = Hash64(hash ^ word);
  }
  return hash;
}

}  // namespace freshet::base
