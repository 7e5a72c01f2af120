#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace freshet::base {

// Philox 4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3"): a keyed bijection of a counter, so
// that any number of a stream can be computed alone, in any order, on any machine.
std::array<std::uint32_t, 4> Philox(std::uint64_t key, std::uint64_t high, std::uint64_t low);

// A stream of random numbers named by (seed, stream). The whole state is a position, so that saving it is saving one
// number. Copies are independent and equal.
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}
  // A stream with a name: Random(seed, "shuffle").
  Random(std::uint64_t seed, std::string_view stream);

  std::uint64_t Next();  // 64 uniform bits
  double Uniform();      // [0, 1)
  double Uniform(double low, double high) { return low + (high - low) * Uniform(); }
  std::uint64_t Below(std::uint64_t end);  // [0, end); end > 0
  double Normal();                         // mean 0, variance 1

  std::uint64_t position() const { return position_; }
  void Seek(std::uint64_t position) { position_ = position; }

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t position_ = 0;  // how many Next() were taken
};

// A well-mixed 64-bit hash of bytes; stable for ever, since models saved with hashed features depend on it.
std::uint64_t Hash64(std::string_view bytes, std::uint64_t seed = 0);
std::uint64_t Hash64(std::uint64_t number);

}  // namespace freshet::base
