// How many threads a team has, and how it shares work. (How they wait is said in short_waits/.)

#include "model/network/onednn/team.h"

#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>

namespace freshet::model::network {
#ifdef _OPENMP
int UseTeam(int threads) {
  const int before = omp_get_max_threads();
  if (threads != before) omp_set_num_threads(threads);
  return before;
}
#else
int UseTeam(int) { return 1; }
#endif

void InParallel(std::size_t count, std::size_t cost_each, RangeWork work) {
#ifdef _OPENMP
  constexpr std::size_t kWorthIt = 1 << 17;  // floats: waking threads costs some microseconds
  const auto threads = static_cast<std::size_t>(omp_get_max_threads());
  if (threads > 1 && count > 1 && count * cost_each >= kWorthIt) {
#pragma omp parallel
    {
      const auto team = static_cast<std::size_t>(omp_get_num_threads());
      const auto me = static_cast<std::size_t>(omp_get_thread_num());
      const std::size_t first = count * me / team, last = count * (me + 1) / team;
      if (first < last) work(first, last);
    }
    return;
  }
#endif
  (void)cost_each;
  if (count > 0) work(0, count);
}

void AddInto(float* to, const float* from, std::size_t count) {
  constexpr std::size_t kPiece = 4096;
  InParallel((count + kPiece - 1) / kPiece, kPiece, [&](std::size_t first, std::size_t last) {
    const std::size_t end = std::min(last * kPiece, count);
#pragma omp simd
    for (std::size_t i = first * kPiece; i < end; ++i) to[i] += from[i];
  });
}

}  // namespace freshet::model::network
