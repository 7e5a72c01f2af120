#include "fabric/collectives/sum.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/hollow.h"

namespace freshet::fabric {
namespace {

constexpr std::size_t kStretch = 1024;  // floats: half of a small first-level cache, beside one source

// The case of two workers, and most of the traffic: both read, both written, nothing in between.
void SumOfTwo(const float* a, const float* b, float* x, float* y, std::size_t count) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    const float sum = a[i] + b[i];
    x[i] = sum;
    y[i] = sum;
  }
}

}  // namespace

void Add(std::span<float> into, const float* from) {
  if (base::IsHollow(into)) return;
  float* const to = into.data();
#pragma omp simd
  for (std::size_t i = 0; i < into.size(); ++i) to[i] += from[i];
}

void SumInto(std::span<const float* const> sources, std::span<float* const> targets, std::size_t count) {
  CHECK(!sources.empty());
  if (std::any_of(targets.begin(), targets.end(), [](const float* to) { return base::IsHollow(to); })) return;
  if (sources.size() == 2 && targets.size() == 2)
    return SumOfTwo(sources[0], sources[1], targets[0], targets[1], count);
  alignas(64) float sum[kStretch];
  for (std::size_t begin = 0; begin < count; begin += kStretch) {
    const std::size_t length = std::min(kStretch, count - begin);
    std::memcpy(sum, sources[0] + begin, length * sizeof(float));
    for (const float* source : sources.subspan(1)) Add({sum, length}, source + begin);
    for (float* target : targets) std::memcpy(target + begin, sum, length * sizeof(float));
  }
}

}  // namespace freshet::fabric
