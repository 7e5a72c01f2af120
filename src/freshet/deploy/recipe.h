#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "deploy/deployment.h"

namespace freshet::deploy {

// Ways for iterations to train, found by experiment (docs/continuous.md):
//
//   light   for linear models: each iteration sweeps over as many old rows as have come new, at 0.3 times the rate,
//           and leaves the new ones to the incremental updates
//   steady  for linear models that gain by many passes, on data that hardly drifts: six times as many old rows, at
//           half the rate
//   heavy   for models that learn slowly, as factorization: the buffer and six old rows for each of its own, at
//           twice the rate
//   paper   the buffer and a tenth of the history, at the rate of incremental updates
//
// After a drift, iterations of the first three draw newer rows only and the optimizer forgets most of what it
// summed up. That is off for ratings, where one person's session looks like drift.
std::vector<std::string> RecipeNames();
// "light" or "heavy".
std::string_view RecipeFor(const model::Traits& model);
// Sets the options that a recipe is about and leaves the others. kInvalid for a name that is none.
Result<void> UseRecipe(std::string_view name, const model::Traits& model, DeploymentOptions& options);

}  // namespace freshet::deploy
