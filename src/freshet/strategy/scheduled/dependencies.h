#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "strategy/scheduled/own_columns.h"

namespace freshet::strategy::scheduled {

// Which coordinates may be updated in the same round, each as if it were alone. Two may not that are correlated by more
// than rho. Nor may one whose correlations with all others of the round add up to 1: below that, what the updates of a
// round do to one another is less than what they gain, so that a round never makes the objective larger.
//
// What correlations are known is remembered, up to kMostKnown of them. Threads: one.
class Dependencies {
 public:
  static constexpr std::size_t kMostKnown = 1 << 22;
  // Rows weigh so much in a correlation; borrowed.
  Dependencies(double rho, std::span<const double> row_weights) : rho_(rho), row_weights_(row_weights) {}

  struct Candidate {
    std::uint32_t coordinate = 0;
    Column column = {};
    double square = 0;  // Σ weight · value², above 0
  };
  // Of candidates, the first of which matter most: which may be updated together. The first always may.
  std::vector<bool> Together(std::span<const Candidate> candidates);

 private:
  double Correlation(const Candidate& a, const Candidate& b);  // its size

  const double rho_;
  const std::span<const double> row_weights_;
  std::unordered_map<std::uint64_t, double> known_;
};

}  // namespace freshet::strategy::scheduled
