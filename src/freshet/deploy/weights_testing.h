#pragma once

#include <vector>

#include "deploy/deployment.h"

namespace freshet::deploy {

// All weights of the state that learns, block after block.
inline std::vector<float> Weights(const Deployment& deployment) {
  std::vector<float> all;
  const auto& parameters = deployment.models().state().parameters;
  for (std::size_t b = 0; b < parameters.blocks(); ++b)
    for (const float value : parameters.Gather(b)) all.push_back(value);
  return all;
}

}  // namespace freshet::deploy
