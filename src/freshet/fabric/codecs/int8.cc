#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "fabric/codecs/kinds.h"

namespace freshet::fabric {
namespace {

// A group is a scale (float) and a byte for each value: the value is about scale · byte, byte in [-127, 127].
class Int8 final : public Codec {
 public:
  std::string_view name() const override { return "int8"; }
  bool uses_residual() const override { return true; }

  void Encode(std::span<const float> values, std::span<float> residual, std::vector<std::byte>& out) override {
    CHECK(residual.empty() || residual.size() == values.size());
    out.resize(EncodedBytes(values.size()));
    std::byte* to = out.data();
    for (std::size_t begin = 0; begin < values.size(); begin += kCodecGroup) {
      const std::size_t count = std::min(kCodecGroup, values.size() - begin);
      EncodeGroup(values.subspan(begin, count), residual.empty() ? residual : residual.subspan(begin, count), to);
      to += sizeof(float) + count;
    }
  }

  std::size_t EncodedBytes(std::size_t count) const override {
    return count + (count + kCodecGroup - 1) / kCodecGroup * sizeof(float);
  }

  Result<void> Decode(std::span<const std::byte> bytes, std::span<float> into, Onto onto) const override {
    TRY(ExpectBytes(name(), bytes.size(), EncodedBytes(into.size()), into.size()));
    const std::byte* from = bytes.data();
    for (std::size_t begin = 0; begin < into.size(); begin += kCodecGroup) {
      const std::size_t count = std::min(kCodecGroup, into.size() - begin);
      float scale;
      std::memcpy(&scale, from, sizeof scale);
      from += sizeof scale;
      float* const to = into.data() + begin;
      if (onto == Onto::kAdd)
        for (std::size_t i = 0; i < count; ++i) to[i] += scale * static_cast<float>(static_cast<std::int8_t>(from[i]));
      else
        for (std::size_t i = 0; i < count; ++i) to[i] = scale * static_cast<float>(static_cast<std::int8_t>(from[i]));
      from += count;
    }
    return {};
  }

 private:
  static void EncodeGroup(std::span<const float> values, std::span<float> residual, std::byte* to) {
    const std::size_t count = values.size();
    std::array<float, kCodecGroup> sum;
    std::uint32_t most_bits = 0;  // magnitudes are ordered as their bits are, with what is not finite on top
    for (std::size_t i = 0; i < count; ++i) {
      sum[i] = residual.empty() ? values[i] : values[i] + residual[i];
      most_bits = std::max(most_bits, std::bit_cast<std::uint32_t>(sum[i]) & 0x7fffffff);
    }
    const auto most = std::bit_cast<float>(most_bits);
    const float scale = std::isfinite(most) ? most / 127 : std::numeric_limits<float>::quiet_NaN();
    // A group of tiny numbers is sent as zeros: the reciprocal of its scale would be infinite.
    const float inverse = scale >= std::numeric_limits<float>::min() ? 1 / scale : 0;
    std::memcpy(to, &scale, sizeof scale);
    to += sizeof scale;
    for (std::size_t i = 0; i < count; ++i) {
      const float rounded = std::nearbyint(inverse == 0 ? 0 : sum[i] * inverse);
      to[i] = static_cast<std::byte>(static_cast<std::int8_t>(rounded));
      if (!residual.empty()) residual[i] = sum[i] - scale * rounded;
    }
  }
};

}  // namespace

CodecPtr MakeInt8(const CodecOptions&) { return std::make_unique<Int8>(); }

}  // namespace freshet::fabric
