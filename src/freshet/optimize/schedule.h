#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace freshet::optimize {

// The learning rate over time. `step` counts updates from 0; `progress` is the share of the planned training that is
// done, from 0 to 1.
struct Schedule {
  std::string kind = "constant";
  double rate = 0.1;
  double decay = 1e-5;             // inverse: rate / (1 + decay·step); sqrt: rate / √(1 + decay·step)
  std::uint64_t warmup_steps = 0;  // the rate rises linearly over the first steps

  double At(std::uint64_t step, double progress) const { return At(FactorOf(kind), step, progress); }
  // The same with the kind looked up before, for those who ask at every step.
  using Factor = double (*)(double step, double progress, double decay);
  double At(Factor factor, std::uint64_t step, double progress) const;
  static Factor FactorOf(const std::string& kind);  // nullptr when there is no such kind
  Result<void> Validate() const;
  static std::vector<std::string> Kinds();  // constant, inverse, sqrt, cosine, linear
};

}  // namespace freshet::optimize
