#include "deploy/recipe.h"

#include <algorithm>

namespace freshet::deploy {
namespace {

struct Recipe {
  std::string_view name, sampler;
  double rate, per_arrival, buffer_share, scale;
  bool answers_drift;
};
constexpr Recipe kRecipes[] = {{"light", "sweep", 0, 1, 0, 0.3, true},
                               {"steady", "sweep", 0, 6, 0, 0.5, true},
                               {"heavy", "sweep", 0, 6, 1, 2, true},
                               {"paper", "uniform", 0.1, 0, 1, 1, false}};

}  // namespace

std::vector<std::string> RecipeNames() {
  std::vector<std::string> names;
  for (const Recipe& recipe : kRecipes) names.emplace_back(recipe.name);
  return names;
}

std::string_view RecipeFor(const model::Traits& model) { return model.learns_slowly ? "heavy" : "light"; }

Result<void> UseRecipe(std::string_view name, const model::Traits& model, DeploymentOptions& options) {
  const auto* const recipe =
      std::find_if(std::begin(kRecipes), std::end(kRecipes), [&](const Recipe& r) { return r.name == name; });
  if (recipe == std::end(kRecipes))
    return Error{Code::kInvalid, Str("recipe ", Quoted(name), ": expected one of ", Join(RecipeNames(), ", "))};
  const bool drifts = !model.in_sessions;
  options.data.sampler.kind = recipe->sampler;
  options.data.rate.rate = recipe->rate;
  options.data.per_arrival = recipe->per_arrival;
  options.data.buffer_share = recipe->buffer_share;
  options.iteration_scale = recipe->scale;
  options.drift = drifts && recipe->answers_drift ? "adwin" : "none";
  options.drift_keep = drifts && recipe->answers_drift ? 0.1 : 1;
  options.drift_forget = drifts && recipe->answers_drift;
  return {};
}

}  // namespace freshet::deploy
