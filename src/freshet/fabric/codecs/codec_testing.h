#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/random.h"

namespace freshet::fabric {

// Values like those of gradients: mostly small, a few large, some zero.
inline std::vector<float> GradientLike(std::uint64_t seed, std::size_t count) {
  base::Random random(seed, "gradient");
  std::vector<float> values(count);
  for (float& value : values) {
    const double magnitude = std::exp(random.Normal() * 2 - 4);
    value = random.Below(10) == 0 ? 0.0f : static_cast<float>(random.Normal() * magnitude);
  }
  return values;
}

}  // namespace freshet::fabric
