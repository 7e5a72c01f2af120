#pragma once

#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "deploy/samplers/sampler.h"

namespace freshet::deploy {

inline std::unique_ptr<Sampler> NewSampler(SamplerOptions options, std::uint64_t seed = 1) {
  return Sampler::Make(options, seed).value();
}

inline std::vector<std::uint64_t> Drawn(Sampler& sampler, std::uint64_t end, std::uint64_t count,
                                        base::Random& random) {
  std::vector<std::uint64_t> numbers;
  sampler.Draw(end, count, random, numbers);
  return numbers;
}

// Pearson's statistic of counts against what was expected, in deviations above its mean when the expectation is true.
// `freedom` is the number of counts less what ties them together.
inline double ChiSquareExcess(const std::vector<double>& counts, const std::vector<double>& expected, double freedom) {
  double sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) sum += std::pow(counts[i] - expected[i], 2) / expected[i];
  return (sum - freedom) / std::sqrt(2 * freedom);
}
constexpr double kUnlikely = 4.5;  // of an excess; fixed seeds make it a yes or no

}  // namespace freshet::deploy
