#include "deploy_flags.h"

#include "deploy/recipe.h"

namespace freshet::cli {
namespace {

// What an option is unless it is given: the recipe's, for linear models and for factorizations.
template <class Get>
std::string ByRecipe(Get get) {
  std::string shown = "by the recipe:";
  for (const std::string kind : {"linear", "factorization"}) {
    model::ModelConfig config;
    config.kind = kind;
    deploy::DeploymentOptions options;
    const auto model = model::Model::Make(config);
    CHECK(model.ok());
    const model::Traits traits = model.value()->traits();
    const std::string name(deploy::RecipeFor(traits));
    CHECK(deploy::UseRecipe(name, traits, options).ok());
    shown += Str(kind == "linear" ? " " : ", ", name, " ", get(options));
  }
  return shown;
}

}  // namespace

void RegisterIterations(base::Settings& settings, std::string& recipe, deploy::DeploymentOptions& options) {
  using Options = deploy::DeploymentOptions;
  using Traits = base::Settings::Traits;
  auto recipes = deploy::RecipeNames();
  recipes.insert(recipes.begin(), "auto");
  deploy::DataOptions& data = options.data;
  settings.Add("recipe", &recipe, "continuous: what the settings below are unless given (auto: by the model)",
               {.value = "NAME", .choices = recipes});
  const auto add = [&](std::string name, base::Settings::Target target, std::string help, Traits traits, auto get) {
    traits.otherwise = ByRecipe(get);
    settings.Add(std::move(name), target, std::move(help), std::move(traits));
  };
  const Traits number{.value = "X", .least = 0}, share{.value = "X", .least = 0, .most = 1};
  add("sampler", &data.sampler.kind, "how rows of the past are chosen",
      {.value = "NAME", .choices = deploy::Sampler::Kinds()}, [](const Options& o) { return o.data.sampler.kind; });
  add("per-arrival", &data.per_arrival, "rows of the past in an iteration for each arrival before it", number,
      [](const Options& o) { return o.data.per_arrival; });
  add("sampling-rate", &data.rate.rate, "and rows as a share of the past", share,
      [](const Options& o) { return o.data.rate.rate; });
  settings.Add("sample-rows", &data.most_sample, "at most so many rows of the past (0: no limit)", {.value = "N"});
  add("buffer-share", &data.buffer_share, "share of the arrivals before an iteration that join it", share,
      [](const Options& o) { return o.data.buffer_share; });
  add("iteration-scale", &options.iteration_scale, "learning rate of iterations, as a multiple", number,
      [](const Options& o) { return o.iteration_scale; });
  add("drift", &options.drift, "detector of drift", {.value = "NAME", .choices = deploy::DriftDetector::Kinds()},
      [](const Options& o) { return o.drift; });
  add("drift-keep", &options.drift_keep, "after a drift: what is left of the optimizer's sums", share,
      [](const Options& o) { return o.drift_keep; });
  add("drift-forget", &options.drift_forget, "after a drift: draw only rows that came since", {},
      [](const Options& o) { return o.drift_forget ? "yes" : "no"; });
}

void DeployFlags::Register(base::Settings& settings) {
  RegisterIterations(settings, recipe, options);
  deploy::DataOptions& data = options.data;
  settings.Add("adaptive", &data.rate.adaptive, "after a drift: lower the sampling rate for a while");
  settings.Add("half-life", &data.sampler.half_life,
               "share of the past after which a row counts half (samplers recent and hard)", {.value = "X"});
  settings.Add("retrain-error", &options.retrain_error,
               "velox: retrain when the recent error is so many times the one after the last (0: by count)",
               {.value = "X", .least = 0});
}

void DeployFlags::Apply(const base::Settings& settings, deploy::DeploymentOptions& made) const {
  if (settings.Given("sampler")) made.data.sampler.kind = options.data.sampler.kind;
  if (settings.Given("per-arrival")) made.data.per_arrival = options.data.per_arrival;
  if (settings.Given("sampling-rate")) made.data.rate.rate = options.data.rate.rate;
  if (settings.Given("buffer-share")) made.data.buffer_share = options.data.buffer_share;
  if (settings.Given("iteration-scale")) made.iteration_scale = options.iteration_scale;
  if (settings.Given("drift")) made.drift = options.drift;
  if (settings.Given("drift-keep")) made.drift_keep = options.drift_keep;
  if (settings.Given("drift-forget")) made.drift_forget = options.drift_forget;
}

}  // namespace freshet::cli
