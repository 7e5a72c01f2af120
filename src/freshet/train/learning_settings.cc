#include "base/option.h"
#include "model/network/zoo.h"
#include "train/learning.h"

namespace freshet::train {
namespace {

std::vector<std::string> WithAuto(std::vector<std::string> choices) {
  choices.insert(choices.begin(), "auto");
  return choices;
}

// The kinds of models, networks by the names they have in the zoo.
std::vector<std::string> ModelNames() {
  std::vector<std::string> names = {"auto"};
  for (const std::string& kind : model::Model::Kinds())
    if (kind != "network") names.push_back(kind);
  for (const auto& entry : model::network::Zoo()) names.emplace_back(entry.name);
  return names;
}

}  // namespace

void Learning::RegisterModel(base::Settings& settings) {
  settings.Add("model", &model, "what to learn; networks by name or description",
               {.letter = 'm', .value = "KIND", .choices = ModelNames(), .or_file = ".toml"});
  settings.Add("loss", &loss, "what to minimise (auto: by the labels)",
               {.value = "NAME", .choices = WithAuto(model::LossNames())});
  settings.Add("factors", &factors, "factors of a user, item or feature",
               {.letter = 'k', .value = "N", .least = 1, .most = 4096});
  settings.Add("clusters", &clusters, "clusters of kmeans", {.value = "N", .least = 1, .most = 1 << 20});
  settings.Add("features", &features, "number of features (kmeans over sparse rows)",
               {.value = "N", .least = 0, .most = 1 << 28});
  settings.Add("spread", &spread, "factors start within ± spread·√(3/factors)", {.value = "X", .least = 0});
  settings.Add("hidden", &hidden, "hidden units of a network that has some to choose (0: its own)",
               {.value = "N", .least = 0, .most = 1 << 20});
  settings.Add("dropout", &dropout, "share of values a network drops before its last layer (-1: its own)",
               {.value = "X", .least = -1, .most = 0.99});
}

void Learning::RegisterLearning(base::Settings& settings) {
  const bool replay = use == Use::kReplay;
  auto optimizers = WithAuto(optimize::Optimizer::Kinds());
  if (!replay) optimizers.insert(optimizers.end(), {"lbfgs", "coordinates"});
  settings.Add("optimizer", &optimizer,
               Str("update rule (auto: adaptive; adagrad for standardised tables and fm; sgd for ",
                   replay ? "networks)" : Str("factorization; coordinates, with ", Option("strategy"), " scheduled)")),
               {.value = "NAME", .choices = optimizers});
  settings.Add("rate", &rate, "learning rate (0: the rule's own)", {.letter = 'l', .value = "X", .least = 0});
  settings.Add("schedule", &schedule,
               Str("of the rate (auto: constant", replay ? ")" : " in one epoch, linear over several)"),
               {.value = "NAME", .choices = WithAuto(optimize::Schedule::Kinds())});
  settings.Add("decay", &decay, "of the inverse and sqrt schedules", {.value = "X", .least = 0});
  settings.Add("warmup", &warmup, "updates over which the rate rises from 0", {.value = "N", .least = 0});
  settings.Add("l1", &l1, "pull of weights to exactly zero", {.value = "X", .least = 0});
  settings.Add("l2", &l2,
               Str("pull of weights towards zero (-1: 0, factorization ", FactorDecay(),
                   replay ? "" : ", by coordinates 0.09", ")"),
               {.value = "X", .least = -1});
  settings.Add("momentum", &momentum, "of the momentum rule", {.value = "X", .least = 0, .most = 1});
  settings.Add("beta1", &beta1, "of adam", {.value = "X", .least = 0, .most = 1});
  settings.Add("beta2", &beta2, "of adam", {.value = "X", .least = 0, .most = 1});
  settings.Add("seed", &seed, "of everything random", {.value = "N"});
}

}  // namespace freshet::train
