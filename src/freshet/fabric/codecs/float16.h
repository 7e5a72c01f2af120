#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

// Floats in 16 bits, rounded to the nearest (ties to even): fp16 is IEEE half precision (11 significant bits, up to
// 65504; what is larger becomes infinite), bf16 the upper half of a float (8 significant bits, a float's range). What
// is not a number stays so.
namespace freshet::fabric {

std::uint16_t Fp16Of(float value);
float FromFp16(std::uint16_t half);

inline std::uint16_t Bf16Of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool nan = (bits & 0x7fffffff) > 0x7f800000;
  // A NaN whose upper half is zero would read back as infinite, and rounding could carry it into the sign.
  return static_cast<std::uint16_t>(nan ? (bits >> 16) | 0x40 : (bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
inline float FromBf16(std::uint16_t bf16) { return std::bit_cast<float>(static_cast<std::uint32_t>(bf16) << 16); }

// Whole arrays, by the processor's own conversion where it has one. `bytes` holds 2 for each float, at any alignment.
void PackFp16(std::span<const float> values, std::byte* bytes);
void UnpackFp16(const std::byte* bytes, std::span<float> values);
void PackBf16(std::span<const float> values, std::byte* bytes);
void UnpackBf16(const std::byte* bytes, std::span<float> values);

}  // namespace freshet::fabric
