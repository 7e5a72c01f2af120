#pragma once

#include <cstddef>

// The few loops over float vectors that models share. The order of a sum is fixed at compile time, so that results do
// not depend on anything but the data.
namespace freshet::model {

inline float Dot(const float* a, const float* b, std::size_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// The same for long vectors: four sums of eight, so that an addition need not wait for the one before.
inline float LongDot(const float* a, const float* b, std::size_t n) {
  using Eight = float __attribute__((vector_size(32), aligned(4)));
  Eight sums[4] = {};
  std::size_t i = 0;
  for (; i + 32 <= n; i += 32)
    for (std::size_t k = 0; k < 4; ++k) {
      const auto* const x = reinterpret_cast<const Eight*>(a + i + 8 * k);
      const auto* const y = reinterpret_cast<const Eight*>(b + i + 8 * k);
      sums[k] += *x * *y;
    }
  const Eight all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  float sum = ((all[0] + all[1]) + (all[2] + all[3])) + ((all[4] + all[5]) + (all[6] + all[7]));
  for (; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

inline void AddScaled(float* to, float factor, const float* from, std::size_t n) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) to[i] += factor * from[i];
}

}  // namespace freshet::model
