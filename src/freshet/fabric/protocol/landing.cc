#include "fabric/protocol/landing.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/hollow.h"

namespace freshet::fabric {
namespace {

void Add(std::byte* __restrict onto, const std::byte* __restrict bytes, std::size_t floats) {
  auto* const sums = reinterpret_cast<float*>(onto);  // a span of floats became these bytes
  for (std::size_t i = 0; i < floats; ++i) {
    float value;
    std::memcpy(&value, bytes + i * sizeof value, sizeof value);
    sums[i] += value;
  }
}

}  // namespace

void Landing::Put(std::span<const std::byte> bytes) {
  CHECK(bytes.size() <= into_.size() - landed_);
  if (base::IsHollow(bytes.data()) || base::IsHollow(into_.data())) return Advance(bytes.size());
  if (!adds_) {
    if (!bytes.empty()) std::memcpy(into_.data() + landed_, bytes.data(), bytes.size());
    landed_ += bytes.size();
    return;
  }
  if (const std::size_t have = landed_ % sizeof(float); have > 0) {
    const std::size_t taken = std::min(bytes.size(), sizeof(float) - have);
    std::memcpy(part_ + have, bytes.data(), taken);
    bytes = bytes.subspan(taken);
    landed_ += taken;
    if (have + taken < sizeof(float)) return;
    Add(into_.data() + landed_ - sizeof(float), part_, 1);
  }
  const std::size_t rest = bytes.size() % sizeof(float);
  Add(into_.data() + landed_, bytes.data(), bytes.size() / sizeof(float));
  if (rest > 0) std::memcpy(part_, bytes.data() + bytes.size() - rest, rest);
  landed_ += bytes.size();
}

}  // namespace freshet::fabric
