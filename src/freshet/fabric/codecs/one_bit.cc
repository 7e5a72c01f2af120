#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "base/check.h"
#include "fabric/codecs/float16.h"
#include "fabric/codecs/kinds.h"

namespace freshet::fabric {
namespace {

// A group is the mean of its values from 0 on and of those below (both bf16), and a bit for each value: is it below 0?
// Groups take the place of the columns of Seide et al.: a buffer need not be a matrix.
constexpr std::size_t kMeansBytes = 2 * sizeof(std::uint16_t);

std::size_t BitBytes(std::size_t count) { return (count + 7) / 8; }
std::size_t BytesOf(std::size_t count) {
  return count / kCodecGroup * (kMeansBytes + kCodecGroup / 8) +
         (count % kCodecGroup == 0 ? 0 : kMeansBytes + BitBytes(count % kCodecGroup));
}

using Group = std::array<float, kCodecGroup>;  // filled up with zeros

void PackSigns(const Group& values, std::size_t bytes, std::byte* to) {
  for (std::size_t b = 0; b < bytes; ++b) {
#ifdef __AVX2__
    const __m256 below = _mm256_cmp_ps(_mm256_loadu_ps(values.data() + 8 * b), _mm256_setzero_ps(), _CMP_LT_OQ);
    to[b] = static_cast<std::byte>(_mm256_movemask_ps(below));
#else
    unsigned bits = 0;
    for (unsigned i = 0; i < 8; ++i) bits |= static_cast<unsigned>(values[8 * b + i] < 0) << i;
    to[b] = static_cast<std::byte>(bits);
#endif
  }
}

void Unpack(const std::byte* bits, std::size_t bytes, float above, float below, Group& values) {
  for (std::size_t b = 0; b < bytes; ++b) {
    const auto byte = static_cast<unsigned>(bits[b]);
    for (unsigned i = 0; i < 8; ++i) values[8 * b + i] = (byte & (1u << i)) != 0 ? below : above;
  }
}

void EncodeGroup(std::span<const float> values, std::span<float> residual, std::byte* to) {
  const std::size_t count = values.size();
  Group sum{};
  if (residual.empty())
    std::copy(values.begin(), values.end(), sum.begin());
  else
    for (std::size_t i = 0; i < count; ++i) sum[i] = values[i] + residual[i];
  float above = 0, below = 0;
  int below_count = 0;
#pragma omp simd reduction(+ : above, below, below_count)
  for (std::size_t i = 0; i < count; ++i) {
    const float v = sum[i];
    above += v < 0 ? 0 : v;  // what is not a number goes here, and so into the mean
    below += v < 0 ? v : 0;
    below_count += v < 0 ? 1 : 0;
  }
  const int above_count = static_cast<int>(count) - below_count;
  const std::uint16_t means[2] = {Bf16Of(above_count == 0 ? 0 : above / static_cast<float>(above_count)),
                                  Bf16Of(below_count == 0 ? 0 : below / static_cast<float>(below_count))};
  std::memcpy(to, means, kMeansBytes);
  PackSigns(sum, BitBytes(count), to + kMeansBytes);
  if (residual.empty()) return;
  const float sent_above = FromBf16(means[0]), sent_below = FromBf16(means[1]);
  for (std::size_t i = 0; i < count; ++i) residual[i] = sum[i] - (sum[i] < 0 ? sent_below : sent_above);
}

class OneBit final : public Codec {
 public:
  std::string_view name() const override { return "1bit"; }
  bool uses_residual() const override { return true; }

  void Encode(std::span<const float> values, std::span<float> residual, std::vector<std::byte>& out) override {
    CHECK(residual.empty() || residual.size() == values.size());
    out.resize(BytesOf(values.size()));
    std::byte* to = out.data();
    for (std::size_t begin = 0; begin < values.size(); begin += kCodecGroup) {
      const std::size_t count = std::min(kCodecGroup, values.size() - begin);
      EncodeGroup(values.subspan(begin, count), residual.empty() ? residual : residual.subspan(begin, count), to);
      to += kMeansBytes + BitBytes(count);
    }
  }

  std::size_t EncodedBytes(std::size_t count) const override { return BytesOf(count); }

  Result<void> Decode(std::span<const std::byte> bytes, std::span<float> into, Onto onto) const override {
    TRY(ExpectBytes(name(), bytes.size(), BytesOf(into.size()), into.size()));
    const std::byte* from = bytes.data();
    Group group;
    for (std::size_t begin = 0; begin < into.size(); begin += kCodecGroup) {
      const std::size_t count = std::min(kCodecGroup, into.size() - begin);
      std::uint16_t means[2];
      std::memcpy(means, from, kMeansBytes);
      Unpack(from + kMeansBytes, BitBytes(count), FromBf16(means[0]), FromBf16(means[1]), group);
      float* const to = into.data() + begin;
      if (onto == Onto::kAdd)
        for (std::size_t i = 0; i < count; ++i) to[i] += group[i];
      else
        std::copy_n(group.data(), count, to);
      from += kMeansBytes + BitBytes(count);
    }
    return {};
  }
};

}  // namespace

CodecPtr MakeOneBit(const CodecOptions&) { return std::make_unique<OneBit>(); }

}  // namespace freshet::fabric
