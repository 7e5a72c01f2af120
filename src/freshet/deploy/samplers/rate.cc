#include "deploy/samplers/rate.h"

#include <algorithm>
#include <cmath>

namespace freshet::deploy {
namespace {

constexpr double kFall = 0.25;
constexpr double kRecovery = 1.148698354997035;  // 4^(1/10)
constexpr double kDeepestFall = 1.0 / 1024;      // five drifts

}  // namespace

Result<void> SamplingRateOptions::Validate() const {
  if (!(rate >= 0 && rate <= 1)) return Error{Code::kInvalid, Str("sampling rate ", rate, ": expected 0 to 1")};
  if (!(least >= 0 && least <= rate))
    return Error{Code::kInvalid, Str("least sampling rate ", least, ": expected 0 to the sampling rate, ", rate)};
  return {};
}

SamplingRate::SamplingRate(const SamplingRateOptions& options) : options_(options), value_(options.rate) {
  CHECK(options.Validate().ok());
}

double SamplingRate::Allowed(double value) const {
  if (!options_.adaptive) return options_.rate;
  return std::clamp(value, std::max(options_.least, options_.rate * kDeepestFall), options_.rate);
}

void SamplingRate::OnDrift() {
  value_ = Allowed(value_ * kFall);
  drifted_ = true;
}

void SamplingRate::OnIteration() {
  if (!drifted_) value_ = Allowed(value_ * kRecovery);
  drifted_ = false;
}

std::vector<double> SamplingRate::Save() const { return {value_, drifted_ ? 1.0 : 0.0}; }

bool SamplingRate::Load(std::span<const double> state) {
  if (state.size() != 2 || !(state[0] >= 0 && state[0] <= 1) || !(state[1] == 0 || state[1] == 1)) return false;
  value_ = Allowed(state[0]);
  drifted_ = state[1] == 1;
  return true;
}

}  // namespace freshet::deploy
