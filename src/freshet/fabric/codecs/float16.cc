#include "fabric/codecs/float16.h"

#include <cstring>

#ifdef __F16C__
#include <immintrin.h>
#endif

namespace freshet::fabric {

std::uint16_t Fp16Of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<std::uint16_t>(sign | 0x7e00 | ((magnitude >> 13) & 0x3ff));
  if (magnitude >= 0x477ff000) return sign | 0x7c00;  // rounds to 65536 or more
  if (magnitude < 0x38800000) {
    // Below the least normal half. Adding 0.5 puts the bits that remain at the end of the sum, rounded by the
    // processor.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000));
  }
  const std::uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

float FromFp16(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
  const std::uint32_t magnitude = half & 0x7fff;
  if (magnitude >= 0x7c00) {
    const std::uint32_t quiet = magnitude > 0x7c00 ? 0x400000 : 0;
    return std::bit_cast<float>(sign | 0x7f800000 | quiet | ((magnitude & 0x3ff) << 13));
  }
  if (magnitude >= 0x400) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000));
  const float small = static_cast<float>(magnitude) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(small));
}

void PackFp16(std::span<const float> values, std::byte* bytes) {
  std::size_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= values.size(); i += 8) {
    const __m128i halves =
        _mm256_cvtps_ph(_mm256_loadu_ps(values.data() + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes + 2 * i), halves);
  }
#endif
  for (; i < values.size(); ++i) {
    const std::uint16_t half = Fp16Of(values[i]);
    std::memcpy(bytes + 2 * i, &half, 2);
  }
}

void UnpackFp16(const std::byte* bytes, std::span<float> values) {
  std::size_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= values.size(); i += 8)
    _mm256_storeu_ps(values.data() + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + 2 * i))));
#endif
  for (; i < values.size(); ++i) {
    std::uint16_t half;
    std::memcpy(&half, bytes + 2 * i, 2);
    values[i] = FromFp16(half);
  }
}

void PackBf16(std::span<const float> values, std::byte* bytes) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t bf16 = Bf16Of(values[i]);
    std::memcpy(bytes + 2 * i, &bf16, 2);
  }
}

void UnpackBf16(const std::byte* bytes, std::span<float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t bf16;
    std::memcpy(&bf16, bytes + 2 * i, 2);
    values[i] = FromBf16(bf16);
  }
}

}  // namespace freshet::fabric
