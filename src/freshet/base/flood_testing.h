#pragma once

#include <cstring>
#include <string>

#include "base/random.h"

namespace freshet::base {

// Undoes Hash64 of a number, as anybody can.
inline std::uint64_t Unhash64(std::uint64_t hash) {
  const auto inverse = [](std::uint64_t odd) {
    std::uint64_t x = odd;  // Newton: each round doubles the bits that are right
    for (int round = 0; round < 6; ++round) x *= 2 - odd * x;
    return x;
  };
  const auto unshift = [](std::uint64_t x, int by) {
    std::uint64_t out = x;
    for (int round = 0; round < 3; ++round) out = x ^ (out >> by);
    return out;
  };
  hash = unshift(hash, 31) * inverse(0x94D049BB133111EB);
  hash = unshift(hash, 27) * inverse(0xBF58476D1CE4E5B9);
  return unshift(hash, 30) - 0x9E3779B97F4A7C15;
}

// Name n of a flood: they differ, and the low 32 bits of their Hash64 are all the same.
inline std::string FloodName(std::uint64_t n) {
  const std::uint64_t word = Unhash64(n << 32 | 77) ^ Hash64(std::uint64_t{8});
  std::string name(sizeof word, '\0');
  std::memcpy(name.data(), &word, sizeof word);
  return name;
}

}  // namespace freshet::base
