#pragma once

#include <cstdint>
#include <string_view>

namespace freshet::base {

// A hash for tables in memory whose keys strangers choose. It depends on a secret that each process draws from the
// system, so that nobody outside can tell which keys share a slot: two different texts of at most n bytes have the same
// sum with a chance of at most (n / 7 + 2) / 2^61, whoever chose them (a polynomial at a secret point, modulo 2^61 - 1:
// Carter and Wegman, "Universal Classes of Hash Functions"), and the sum is mixed afterwards.
//
// It is a hidden input, and the only one of its kind: nothing but the time a look-up takes may depend on it. It must
// not reach a file or another process; Hash64 is for those.
//
// Threads: any.
std::uint64_t SecretHash(std::string_view bytes);
std::uint64_t SecretHash(std::uint64_t number);

// 64 bits from the system that nobody can guess.
std::uint64_t Unguessable();

}  // namespace freshet::base
