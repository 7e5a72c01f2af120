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

inline void AddScaled(float* to, float factor, const float* from, std::size_t n) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) to[i] += factor * from[i];
}

}  // namespace freshet::model
