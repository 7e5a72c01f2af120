#include "strategy/scheduled/dependencies.h"

#include <algorithm>
#include <cmath>

namespace freshet::strategy::scheduled {

double Dependencies::Correlation(const Candidate& a, const Candidate& b) {
  const auto [low, high] = std::minmax(a.coordinate, b.coordinate);
  const std::uint64_t key = std::uint64_t{low} << 32 | high;
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  if (known_.size() >= kMostKnown) known_.clear();
  const double size = std::abs(Product(a.column, b.column, row_weights_)) / std::sqrt(a.square * b.square);
  known_.emplace(key, size);
  return size;
}

std::vector<bool> Dependencies::Together(std::span<const Candidate> candidates) {
  std::vector<bool> together(candidates.size(), false);
  std::vector<std::size_t> chosen;
  std::vector<double> sums;  // of the correlations of each that was chosen
  std::vector<double> with;  // of this one, with each
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    with.clear();
    double sum = 0;
    bool may = true;
    for (std::size_t i = 0; i < chosen.size() && may; ++i) {
      with.push_back(Correlation(candidates[chosen[i]], candidates[c]));
      sum += with.back();
      may = with.back() <= rho_ && sum < 1 && sums[i] + with.back() < 1;
    }
    if (!may) continue;
    for (std::size_t i = 0; i < chosen.size(); ++i) sums[i] += with[i];
    chosen.push_back(c);
    sums.push_back(sum);
    together[c] = true;
  }
  return together;
}

}  // namespace freshet::strategy::scheduled
