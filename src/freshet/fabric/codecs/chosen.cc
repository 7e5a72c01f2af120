#include "fabric/codecs/chosen.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "fabric/codecs/float16.h"
#include "fabric/codecs/kinds.h"
#include "fabric/codecs/positions.h"

namespace freshet::fabric {

void ChosenCodec::Encode(std::span<const float> values, std::span<float> residual, std::vector<std::byte>& out) {
  CHECK(values.size() <= UINT32_MAX);
  CHECK(residual.empty() || residual.size() == values.size());
  for (std::size_t i = 0; i < residual.size(); ++i) residual[i] += values[i];
  const std::span<const float> sum = residual.empty() ? values : std::span<const float>(residual);
  chosen_.clear();
  Choose(sum, chosen_);
  out.clear();
  AppendPositions(chosen_, values.size(), out);
  picked_.resize(chosen_.size());
  for (std::size_t i = 0; i < chosen_.size(); ++i) picked_[i] = sum[chosen_[i]];
  const std::size_t begin = out.size();
  out.resize(begin + 2 * picked_.size());
  PackBf16(picked_, out.data() + begin);
  if (residual.empty()) return;
  UnpackBf16(out.data() + begin, picked_);
  for (std::size_t i = 0; i < chosen_.size(); ++i) residual[chosen_[i]] -= picked_[i];
}

std::size_t ChosenCodec::EncodedBytes(std::size_t count) const {
  const auto chosen = static_cast<std::size_t>(std::ceil(expected_ * static_cast<double>(count)));
  return ExpectedPositionBytes(chosen, count) + sizeof(std::uint16_t) * chosen;
}

Result<void> ChosenCodec::Decode(std::span<const std::byte> bytes, std::span<float> into, Onto onto) const {
  std::vector<std::uint32_t> positions;
  TRY(TakePositions(bytes, into.size(), sizeof(std::uint16_t), positions));
  TRY(ExpectBytes(name(), bytes.size(), 2 * positions.size(), positions.size()));
  std::vector<float> values(positions.size());
  UnpackBf16(bytes.data(), values);
  if (onto == Onto::kReplace) std::fill(into.begin(), into.end(), 0.0f);
  for (std::size_t i = 0; i < positions.size(); ++i) into[positions[i]] += values[i];
  return {};
}

}  // namespace freshet::fabric
