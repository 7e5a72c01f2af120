#pragma once

#include <algorithm>
#include <cmath>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

// The few functions that update rules use, for one float and for eight at once (Lanes), so that a rule is written once.
// The four operations work on both; so does mixing Lanes with a float.
namespace freshet::optimize {

inline float Sqrt(float x) { return std::sqrt(x); }
inline float Abs(float x) { return std::abs(x); }
inline float Max(float a, float b) { return std::max(a, b); }
inline float CopySign(float size, float sign) { return std::copysign(size, sign); }
inline float WherePositive(float test, float yes, float no) { return test > 0 ? yes : no; }

#if defined(__AVX2__)
using Lanes = __m256;
inline Lanes Broadcast(float x) { return _mm256_set1_ps(x); }
inline Lanes Sqrt(Lanes x) { return _mm256_sqrt_ps(x); }
inline Lanes Abs(Lanes x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x); }
inline Lanes Max(Lanes a, Lanes b) { return _mm256_max_ps(a, b); }
inline Lanes CopySign(Lanes size, Lanes sign) {
  return _mm256_or_ps(Abs(size), _mm256_and_ps(_mm256_set1_ps(-0.0f), sign));
}
inline Lanes WherePositive(Lanes test, Lanes yes, Lanes no) {
  return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(test, _mm256_setzero_ps(), _CMP_GT_OQ));
}

// Eight records of four floats each, anywhere in memory, as four Lanes (first floats, second floats, …), and back.
struct EightRecords {
  Lanes fields[4];

  template <class Place>  // Place(i) is where record i lies
  explicit EightRecords(Place place) {
    const Lanes a = _mm256_set_m128(_mm_loadu_ps(place(4)), _mm_loadu_ps(place(0)));
    const Lanes b = _mm256_set_m128(_mm_loadu_ps(place(5)), _mm_loadu_ps(place(1)));
    const Lanes c = _mm256_set_m128(_mm_loadu_ps(place(6)), _mm_loadu_ps(place(2)));
    const Lanes d = _mm256_set_m128(_mm_loadu_ps(place(7)), _mm_loadu_ps(place(3)));
    Transpose(a, b, c, d);
  }
  template <class Place>
  void Store(Place place) {
    Transpose(fields[0], fields[1], fields[2], fields[3]);
    for (int i = 0; i < 4; ++i) {
      _mm_storeu_ps(place(i), _mm256_castps256_ps128(fields[i]));
      _mm_storeu_ps(place(i + 4), _mm256_extractf128_ps(fields[i], 1));
    }
  }

 private:
  void Transpose(Lanes a, Lanes b, Lanes c, Lanes d) {
    const Lanes ab_low = _mm256_unpacklo_ps(a, b), ab_high = _mm256_unpackhi_ps(a, b);
    const Lanes cd_low = _mm256_unpacklo_ps(c, d), cd_high = _mm256_unpackhi_ps(c, d);
    fields[0] = _mm256_shuffle_ps(ab_low, cd_low, _MM_SHUFFLE(1, 0, 1, 0));
    fields[1] = _mm256_shuffle_ps(ab_low, cd_low, _MM_SHUFFLE(3, 2, 3, 2));
    fields[2] = _mm256_shuffle_ps(ab_high, cd_high, _MM_SHUFFLE(1, 0, 1, 0));
    fields[3] = _mm256_shuffle_ps(ab_high, cd_high, _MM_SHUFFLE(3, 2, 3, 2));
  }
};
#endif

}  // namespace freshet::optimize
