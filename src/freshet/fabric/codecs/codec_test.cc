#include "fabric/codecs/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "fabric/codecs/codec_testing.h"

namespace freshet::fabric {
namespace {

using Onto = Codec::Onto;

std::unique_ptr<Codec> Made(std::string_view name, const CodecOptions& options = {}) {
  return Codec::Make(name, options).value();
}

// What arrives of `values` in one step; the residual, if any, is kept up to date.
std::vector<float> RoundTrip(Codec& codec, const std::vector<float>& values, std::span<float> residual = {}) {
  std::vector<std::byte> bytes;
  codec.Encode(values, residual, bytes);
  std::vector<float> back(values.size(), 42.0f);
  codec.Decode(bytes, back, Onto::kReplace).value();
  return back;
}

const std::vector<std::size_t> kCounts = {0, 1, 2, 7, 8, 9, 511, 512, 513, 1024, 3001};

double Norm(const std::vector<float>& values) {
  return std::sqrt(std::accumulate(values.begin(), values.end(), 0.0, [](double s, float v) { return s + v * v; }));
}

TEST(Codec, RefusesUnknownNamesAndOptionsWithoutSense) {
  const auto unknown = Codec::Make("zip");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().text.find("1bit"), std::string::npos);
  EXPECT_FALSE(Codec::Make("topk", {.fraction = 0}).ok());
  EXPECT_FALSE(Codec::Make("topk", {.fraction = 1.5}).ok());
  EXPECT_FALSE(Codec::Make("threshold", {.threshold = std::nan("")}).ok());
  for (const std::string& name : Codec::Names()) EXPECT_EQ(Made(name)->name(), name);
}

TEST(Codec, NoneIsExactAndHalvesAreWithinTheirPrecision) {
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (const std::size_t count : kCounts) {
      const std::vector<float> values = GradientLike(seed, count);
      EXPECT_EQ(RoundTrip(*Made("none"), values), values);
      const std::vector<float> fp16 = RoundTrip(*Made("fp16"), values), bf16 = RoundTrip(*Made("bf16"), values);
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_LE(std::abs(fp16[i] - values[i]), std::abs(values[i]) * 0x1p-11f + 0x1p-25f);
        ASSERT_LE(std::abs(bf16[i] - values[i]), std::abs(values[i]) * 0x1p-8f);
      }
    }
}

TEST(Codec, Int8IsWithinHalfAStepOfItsGroup) {
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (const std::size_t count : kCounts) {
      const std::vector<float> values = GradientLike(seed, count);
      const std::vector<float> back = RoundTrip(*Made("int8"), values);
      for (std::size_t begin = 0; begin < count; begin += 512) {
        const std::size_t end = std::min(begin + 512, count);
        float most = 0;
        for (std::size_t i = begin; i < end; ++i) most = std::max(most, std::abs(values[i]));
        for (std::size_t i = begin; i < end; ++i) ASSERT_LE(std::abs(back[i] - values[i]), most / 127 * 0.5001f);
      }
    }
}

TEST(Codec, OneBitKeepsSignsAndTheSumOfEachGroup) {
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (const std::size_t count : kCounts) {
      const std::vector<float> values = GradientLike(seed, count);
      const std::vector<float> back = RoundTrip(*Made("1bit"), values);
      double sum = 0, back_sum = 0, magnitude = 0;
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_GE(back[i] * values[i], 0.0f);
        sum += values[i], back_sum += back[i], magnitude += std::abs(values[i]);
      }
      ASSERT_LE(std::abs(sum - back_sum), magnitude * 0x1p-8);
    }
}

TEST(Codec, TopKSendsTheLargestAndThresholdAllThatReachIt) {
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (const std::size_t count : kCounts)
      for (const double fraction : {0.001, 0.01, 0.3, 1.0}) {
        const std::vector<float> values = GradientLike(seed, count);
        const std::vector<float> back = RoundTrip(*Made("topk", {.fraction = fraction}), values);
        std::vector<float> magnitudes;
        for (const float value : values) magnitudes.push_back(std::abs(value));
        std::sort(magnitudes.rbegin(), magnitudes.rend());
        const auto k = static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(count)));
        const float least = count == 0 ? 0 : magnitudes[k - 1];
        const auto sent =
            static_cast<std::size_t>(std::count_if(back.begin(), back.end(), [](float v) { return v != 0; }));
        if (least > 0) {
          ASSERT_EQ(sent, k);
        }
        for (std::size_t i = 0; i < count; ++i) {
          if (std::abs(values[i]) > least) {
            ASSERT_NE(back[i], 0.0f);
          }
          if (std::abs(values[i]) < least) {
            ASSERT_EQ(back[i], 0.0f);
          }
          if (back[i] != 0) {
            ASSERT_LE(std::abs(back[i] - values[i]), std::abs(values[i]) * 0x1p-8f);
          }
        }
        const std::vector<float> reached = RoundTrip(*Made("threshold", {.threshold = 0.05}), values);
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(reached[i] != 0, std::abs(values[i]) >= 0.05f);
      }
}

TEST(Codec, TopKTakesEqualValuesFromTheFront) {
  EXPECT_EQ(RoundTrip(*Made("topk", {.fraction = 0.5}), {1, -1, 1, 1, -1}), (std::vector<float>{1, -1, 1, 0, 0}));
  EXPECT_EQ(RoundTrip(*Made("topk", {.fraction = 0.5}), {0, 0, 3, 0, 0}), (std::vector<float>{0, 0, 3, 0, 0}));
}

// What arrived over all steps and what is still in the residual are together what was put in; and since the residual
// stays bounded, what arrives tracks what is sent.
TEST(Codec, WithFeedbackEverythingArrivesInTheEnd) {
  for (const std::string& name : Codec::Names()) {
    const auto codec = Made(name, {.fraction = 0.05, .threshold = 0.5});
    if (!codec->uses_residual()) continue;
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      SCOPED_TRACE(Str(name, " seed ", seed));
      const std::size_t count = 700;
      std::vector<float> residual(count);
      std::vector<double> sent(count), arrived(count);
      double early = 0;
      for (std::uint64_t step = 0; step < 400; ++step) {
        const std::vector<float> values = GradientLike(seed * 1000 + step, count);
        const std::vector<float> back = RoundTrip(*codec, values, residual);
        for (std::size_t i = 0; i < count; ++i) sent[i] += values[i], arrived[i] += back[i];
        if (step == 99) early = Norm(residual);
      }
      for (std::size_t i = 0; i < count; ++i) ASSERT_NEAR(sent[i], arrived[i] + residual[i], 1e-3);
      EXPECT_LT(Norm(residual), 3 * early + 1);
    }
  }
}

TEST(Codec, AddsToWhatIsThereWhenToldTo) {
  for (const std::string& name : Codec::Names())
    for (const std::size_t count : kCounts) {
      const auto codec = Made(name, {.fraction = 0.2});
      std::vector<std::byte> bytes;
      codec->Encode(GradientLike(1, count), {}, bytes);
      std::vector<float> set(count, 7.0f), added(count, 7.0f);
      codec->Decode(bytes, set, Onto::kReplace).value();
      codec->Decode(bytes, added, Onto::kAdd).value();
      for (std::size_t i = 0; i < count; ++i) ASSERT_FLOAT_EQ(added[i], 7.0f + set[i]) << name;
    }
}

TEST(Codec, WhatIsNotFiniteDoesNotGoUnseen) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const std::string& name : Codec::Names())
    for (const float bad : {inf, -inf, std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> values = GradientLike(5, 600);
      values[123] = bad;
      EXPECT_FALSE(std::isfinite(RoundTrip(*Made(name), values)[123])) << name;
    }
}

TEST(Codec, TinyValuesAreNotLostWithFeedback) {
  std::vector<float> residual(10), values(10, 1e-39f);
  for (const std::string& name : Codec::Names()) {
    std::fill(residual.begin(), residual.end(), 0.0f);
    for (const float value : RoundTrip(*Made(name), values, residual)) ASSERT_LE(value, 2e-39f) << name;
  }
}

TEST(Codec, RefusesTruncatedAndLengthenedBytes) {
  for (const std::string& name : Codec::Names())
    for (const std::size_t count : kCounts) {
      const auto codec = Made(name, {.fraction = 0.1});
      std::vector<std::byte> bytes;
      codec->Encode(GradientLike(2, count), {}, bytes);
      std::vector<float> into(count);
      for (std::size_t length = 0; length < bytes.size(); length += 1 + bytes.size() / 50) {
        const std::vector<std::byte> part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
        const auto result = codec->Decode(part, into, Onto::kAdd);
        ASSERT_FALSE(result.ok()) << name << " " << count << " " << length;
        ASSERT_EQ(result.error().code, Code::kCorrupt);
      }
      bytes.push_back(std::byte{0});
      ASSERT_FALSE(codec->Decode(bytes, into, Onto::kAdd).ok()) << name << " " << count;
    }
}

TEST(Codec, SurvivesAnyBytes) {
  base::Random random(9, "bytes");
  for (const std::string& name : Codec::Names()) {
    const auto codec = Made(name);
    for (int round = 0; round < 3000; ++round) {
      std::vector<float> into(random.Below(100));
      std::vector<std::byte> bytes(random.Below(300));
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Next());
      if (!bytes.empty()) bytes[0] = static_cast<std::byte>(random.Below(4));  // of chosen codecs: the form
      (void)codec->Decode(bytes, into, Onto::kAdd).ok();
    }
  }
}

TEST(Codec, ExpectsTheBytesItThenTakes) {
  for (const std::string& name : Codec::Names())
    for (const std::size_t count : {1, 511, 512, 513, 100000}) {
      SCOPED_TRACE(Str(name, " ", count));
      for (const double fraction : {0.001, 0.01, 0.2, 0.9}) {
        const std::vector<float> values = GradientLike(count, count);
        std::vector<float> sizes;
        for (const float value : values) sizes.push_back(std::abs(value));
        std::sort(sizes.rbegin(), sizes.rend());
        const auto travel = static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(count)));
        const auto codec = Made(name, {.fraction = fraction, .threshold = std::max(sizes[travel - 1], 1e-30f)});
        std::vector<std::byte> bytes;
        codec->Encode(values, {}, bytes);
        const auto taken = static_cast<double>(bytes.size());
        if (name == "topk" || name == "threshold") {
          EXPECT_NEAR(static_cast<double>(codec->EncodedBytes(count)), taken, 0.05 * taken + 4);
        } else {
          EXPECT_EQ(codec->EncodedBytes(count), bytes.size());
        }
      }
    }
}

TEST(Codec, OneBitTakesATwentyEighthOfTheBytesAndTopKAHundredth) {
  const std::vector<float> values = GradientLike(4, 100000);
  std::vector<std::byte> bytes;
  Made("1bit")->Encode(values, {}, bytes);
  EXPECT_LE(bytes.size() * 28, values.size() * sizeof(float));
  Made("topk")->Encode(values, {}, bytes);
  EXPECT_LE(bytes.size() * 100, values.size() * sizeof(float));
  Made("threshold", {.threshold = 1e-30})->Encode(std::vector<float>(1000, 1.0f), {}, bytes);
  EXPECT_LE(bytes.size(), 2003u);  // when all travel, their positions take nothing
}

}  // namespace
}  // namespace freshet::fabric
