#include "deploy/drift/page_hinkley.h"

#include <algorithm>
#include <cmath>

namespace freshet::deploy {
namespace {

// In standard deviations of the errors.
constexpr double kTolerance = 0.1, kMostOfOneRow = 5;
constexpr double kWarningSum = 25, kDriftSum = 50;
constexpr double kLeastRows = 30;

}  // namespace

Drift PageHinkley::OnError(double error) {
  const double deviation = std::sqrt(errors_.variance());
  if (errors_.count >= kLeastRows && deviation > 0) {
    const double z = std::min((error - errors_.mean) / deviation, kMostOfOneRow);
    sum_ = std::max(0.0, sum_ + z - kTolerance);
  }
  errors_.Add(error);
  rising_ = sum_ > 0 ? rising_ + 1 : 0;
  if (sum_ > kDriftSum) {
    const double since = rising_;
    *this = PageHinkley();
    SetSince(since);
    return Drift::kDrift;
  }
  return sum_ > kWarningSum ? Drift::kWarning : Drift::kNone;
}

std::vector<double> PageHinkley::Save() const { return {errors_.count, errors_.mean, errors_.squares, sum_, rising_}; }

bool PageHinkley::Load(std::span<const double> state) {
  if (state.size() != 5) return false;
  const ErrorMoments errors{state[0], state[1], state[2]};
  if (!errors.plausible() || !(state[3] >= 0 && state[3] <= kDriftSum)) return false;
  if (!(state[4] >= 0 && state[4] <= errors.count)) return false;
  errors_ = errors;
  sum_ = state[3];
  rising_ = state[4];
  return true;
}

}  // namespace freshet::deploy
