#include "fabric/codecs/float16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"

namespace freshet::fabric {
namespace {

std::uint32_t Bits(float value) { return std::bit_cast<std::uint32_t>(value); }

// All magnitudes, and the edges: where halves end, begin to be denormal, and where rounding ties.
std::vector<float> ManyFloats() {
  std::vector<float> values = {0.0f,
                               -0.0f,
                               65504.0f,
                               65519.9f,
                               65520.0f,
                               -65536.0f,
                               1e30f,
                               0x1p-14f,
                               0x1p-24f,
                               0x1p-25f,
                               0x1.8p-25f,
                               0x1p-26f,
                               1.0f + 0x1p-11f,
                               1.0f + 0x1.8p-10f,
                               std::numeric_limits<float>::max(),
                               std::numeric_limits<float>::denorm_min(),
                               std::numeric_limits<float>::infinity(),
                               -std::numeric_limits<float>::infinity(),
                               std::numeric_limits<float>::quiet_NaN()};
  base::Random random(3, "floats");
  for (int i = 0; i < 200000; ++i) values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random.Next())));
  for (int i = 0; i < 100000; ++i)
    values.push_back(static_cast<float>(random.Normal() * std::exp(random.Normal() * 6)));
  return values;
}

TEST(Float16, EveryHalfGoesToAFloatAndBack) {
  for (std::uint32_t h = 0; h < 0x10000; ++h) {
    const auto half = static_cast<std::uint16_t>(h);
    const float value = FromFp16(half);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(FromFp16(Fp16Of(value)))) << h;
      ASSERT_GT(half & 0x7fff, 0x7c00) << h;
    } else {
      ASSERT_EQ(Fp16Of(value), half) << h;
    }
  }
}

TEST(Float16, RoundsToTheNearestHalf) {
  for (const float value : ManyFloats()) {
    if (!(std::abs(value) < 65504)) continue;
    const std::uint16_t half = Fp16Of(value);
    const double error = std::abs(static_cast<double>(FromFp16(half)) - value);
    const auto next = static_cast<std::uint16_t>(half + 1);
    ASSERT_LE(error, std::abs(static_cast<double>(FromFp16(next)) - value)) << value;
    if ((half & 0x7fff) > 0) {
      const auto before = static_cast<std::uint16_t>(half - 1);
      ASSERT_LE(error, std::abs(static_cast<double>(FromFp16(before)) - value)) << value;
    }
  }
}

TEST(Float16, ArraysAreConvertedAsSingleValuesAre) {
  const std::vector<float> values = ManyFloats();
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{19}, values.size()}) {
    const std::span<const float> some = std::span(values).first(count);
    std::vector<std::byte> bytes(2 * count + 1);  // one off, so that nothing is aligned
    std::vector<float> back(count);
    PackFp16(some, bytes.data() + 1);
    UnpackFp16(bytes.data() + 1, back);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(Bits(back[i]), Bits(FromFp16(Fp16Of(some[i])))) << some[i];
    PackBf16(some, bytes.data() + 1);
    UnpackBf16(bytes.data() + 1, back);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(Bits(back[i]), Bits(FromBf16(Bf16Of(some[i])))) << some[i];
  }
}

TEST(Float16, BrainFloatsAreWithinHalfAUnitOfTheirLastPlace) {
  for (const float value : ManyFloats()) {
    const float back = FromBf16(Bf16Of(value));
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(back));
    } else if (std::abs(value) < 3.38e38f && std::abs(value) > 1e-37f) {
      ASSERT_LE(std::abs(back - value), std::abs(value) * 0x1p-8f) << value;
    }
  }
}

}  // namespace
}  // namespace freshet::fabric
