#include "peak.h"

#include <algorithm>
#include <thread>
#include <vector>

namespace freshet::bench {
namespace {

using Narrow = float __attribute__((vector_size(32)));
using Wide = float __attribute__((vector_size(64)));
constexpr int kSums = 12;  // enough to keep the pipes full, few enough for the registers
constexpr int kRounds = 20'000'000;

// Written out for each width: a function that is compiled for wider vectors cannot take its body from a template.
float SpinNarrow() {
  Narrow sums[kSums], factor = Narrow{} + 0.5f, more = Narrow{} + 1.0f;
  for (int k = 0; k < kSums; ++k) sums[k] = Narrow{} + static_cast<float>(k);  // equal sums would be computed once
  for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
    for (Narrow& sum : sums) sum = sum * factor + more;
  }
  float total = 0;
  for (const Narrow& sum : sums) total += sum[0];
  return total;
}

#if defined(__x86_64__)
__attribute__((target("avx512f,prefer-vector-width=512"))) float SpinWide() {
  Wide sums[kSums], factor = Wide{} + 0.5f, more = Wide{} + 1.0f;
  for (int k = 0; k < kSums; ++k) sums[k] = Wide{} + static_cast<float>(k);  // equal sums would be computed once
  for (int round = 0; round < kRounds / 2; ++round) {
#pragma GCC unroll 12
    for (Wide& sum : sums) sum = sum * factor + more;
  }
  float total = 0;
  for (const Wide& sum : sums) total += sum[0];
  return total;
}
bool HasWide() { return __builtin_cpu_supports("avx512f"); }
#else
float SpinWide() { return 0; }
bool HasWide() { return false; }
#endif

double Measure(int threads, base::Clock& clock, float (*spin)()) {
  std::vector<float> totals(static_cast<std::size_t>(threads));
  const auto begun = clock.Now();
  {
    std::vector<std::jthread> workers;
    for (float& total : totals) workers.emplace_back([&total, spin] { total = spin(); });
  }
  const double seconds = base::Seconds(clock.Now() - begun);
  // Every sum ends at 2; asking for it keeps the work from being left out.
  const bool right = std::all_of(totals.begin(), totals.end(), [](float total) { return total == 2.0f * kSums; });
  return right ? 2.0 * 8 * kSums * kRounds * threads / seconds : 0;
}

}  // namespace

double PeakFlops(int threads, base::Clock& clock) {
  return std::max(Measure(threads, clock, SpinNarrow), HasWide() ? Measure(threads, clock, SpinWide) : 0);
}

}  // namespace freshet::bench
