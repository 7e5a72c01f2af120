#pragma once

#include <string>

#include "base/settings.h"
#include "deploy/deployment.h"

namespace freshet::cli {

// The flags about iterations that replay and serve share: the recipe, and what it settles unless they are given.
void RegisterIterations(base::Settings& settings, std::string& recipe, deploy::DeploymentOptions& options);

// Those of serve. What is not given follows from a recipe for the model.
struct DeployFlags {
  deploy::DeploymentOptions options;
  std::string recipe = "auto";

  void Register(base::Settings& settings);
  // Those that were given, instead of what the recipe says.
  void Apply(const base::Settings& settings, deploy::DeploymentOptions& made) const;
};

}  // namespace freshet::cli
