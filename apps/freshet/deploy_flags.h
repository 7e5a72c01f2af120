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
  // The options for one model: the recipe's, but for those that were given.
  Result<deploy::DeploymentOptions> For(const base::Settings& settings, const model::Traits& model) const;
  std::string RecipeOf(const model::Traits& model) const;
};

}  // namespace freshet::cli
