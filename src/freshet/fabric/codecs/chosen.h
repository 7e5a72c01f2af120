#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fabric/codecs/codec.h"

namespace freshet::fabric {

// A codec of which only some values travel, each whole (as bf16): positions, then values. Who derives from it chooses
// them; the rest stays in the residual.
class ChosenCodec : public Codec {
 public:
  bool uses_residual() const final { return true; }
  void Encode(std::span<const float> values, std::span<float> residual, std::vector<std::byte>& out) final;
  std::size_t EncodedBytes(std::size_t count) const final;
  Result<void> Decode(std::span<const std::byte> bytes, std::span<float> into, Onto onto) const final;

 protected:
  explicit ChosenCodec(double expected) : expected_(expected) {}  // the share that is expected to travel
  // Appends to `chosen` the positions that travel, ascending.
  virtual void Choose(std::span<const float> values, std::vector<std::uint32_t>& chosen) = 0;

 private:
  const double expected_;
  std::vector<std::uint32_t> chosen_;
  std::vector<float> picked_;
};

// The bits of a float without its sign: ordered as magnitudes are, with what is not finite on top.
inline std::uint32_t MagnitudeBits(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7fffffff; }

}  // namespace freshet::fabric
