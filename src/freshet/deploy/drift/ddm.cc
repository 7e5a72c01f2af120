#include "deploy/drift/ddm.h"

#include <algorithm>
#include <cmath>

namespace freshet::deploy {
namespace {

constexpr double kLeastRows = 100, kLeastDeviations = 3;
constexpr double kWarningDeviations = 2, kDriftDeviations = 3;

}  // namespace

Drift Ddm::OnError(double error) {
  least_ = errors_.count > 0 ? std::min(least_, error) : error;
  errors_.Add(error);
  const double deviation = std::sqrt(errors_.variance() / errors_.count);
  if (errors_.count < kLeastRows || deviation == 0) return Drift::kNone;
  if (errors_.mean - least_ < kLeastDeviations * deviation) return Drift::kNone;
  const double level = errors_.mean + deviation;
  if (lowest_.deviation == 0 || level < lowest_.mean + lowest_.deviation)
    lowest_ = {errors_.mean, deviation, errors_.count};
  if (level > lowest_.mean + kDriftDeviations * lowest_.deviation) {
    const double since = errors_.count - lowest_.count;
    *this = Ddm();
    SetSince(since);
    return Drift::kDrift;
  }
  return level > lowest_.mean + kWarningDeviations * lowest_.deviation ? Drift::kWarning : Drift::kNone;
}

std::vector<double> Ddm::Save() const {
  return {errors_.count, errors_.mean, errors_.squares, least_, lowest_.mean, lowest_.deviation, lowest_.count};
}

bool Ddm::Load(std::span<const double> state) {
  if (state.size() != 7 || !std::all_of(state.begin(), state.end(), [](double x) { return std::isfinite(x); }))
    return false;
  const ErrorMoments errors{state[0], state[1], state[2]};
  const Trough lowest{state[4], state[5], state[6]};
  if (!errors.plausible() || lowest.deviation < 0) return false;
  if (!(lowest.count >= 0 && lowest.count <= errors.count)) return false;
  errors_ = errors;
  least_ = state[3];
  lowest_ = lowest;
  return true;
}

}  // namespace freshet::deploy
