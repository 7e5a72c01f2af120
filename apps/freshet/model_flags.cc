#include "model_flags.h"

#include <algorithm>
#include <cmath>

#include "data/augment.h"
#include "data/text.h"
#include "model/network/description.h"
#include "model/network/remarks.h"
#include "model/network/zoo.h"

namespace freshet::cli {
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

// Many features that move a score together must each move it less: dense rows of more than 64 numbers get a lower rate.
double ManyFeatures(const data::Description& description) {
  constexpr double kFew = 64;
  if (!description.dense || static_cast<double>(description.features) <= kFew) return 1;
  return std::sqrt(kFew / static_cast<double>(description.features));
}

// How strongly factors are held near zero.
double FactorDecay(ModelFlags::Use use) { return use == ModelFlags::Use::kReplay ? 0.1 : 0.05; }

}  // namespace

void ModelFlags::RegisterModel(base::Settings& settings) {
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

void ModelFlags::RegisterLearning(base::Settings& settings) {
  const bool replay = use == Use::kReplay;
  auto optimizers = WithAuto(optimize::Optimizer::Kinds());
  if (!replay) optimizers.emplace_back("lbfgs");
  settings.Add("optimizer", &optimizer,
               Str("update rule (auto: adaptive; adagrad for standardised tables and fm; sgd for ",
                   replay ? "networks)" : "factorization)"),
               {.value = "NAME", .choices = optimizers});
  settings.Add("rate", &rate, "learning rate (0: the rule's own)", {.letter = 'l', .value = "X", .least = 0});
  settings.Add("schedule", &schedule,
               Str("of the rate (auto: constant", replay ? ")" : " in one epoch, linear over several)"),
               {.value = "NAME", .choices = WithAuto(optimize::Schedule::Kinds())});
  settings.Add("decay", &decay, "of the inverse and sqrt schedules", {.value = "X", .least = 0});
  settings.Add("warmup", &warmup, "updates over which the rate rises from 0", {.value = "N", .least = 0});
  settings.Add("l1", &l1, "pull of weights to exactly zero", {.value = "X", .least = 0});
  settings.Add("l2", &l2, Str("pull of weights towards zero (-1: 0, factorization ", FactorDecay(use), ")"),
               {.value = "X", .least = -1});
  settings.Add("momentum", &momentum, "of the momentum rule", {.value = "X", .least = 0, .most = 1});
  settings.Add("beta1", &beta1, "of adam", {.value = "X", .least = 0, .most = 1});
  settings.Add("beta2", &beta2, "of adam", {.value = "X", .least = 0, .most = 1});
  settings.Add("seed", &seed, "of everything random", {.value = "N"});
}

bool ModelFlags::IsNetwork() const {
  const auto zoo = model::network::Zoo();
  return model.ends_with(".toml") || model == "network" ||
         std::any_of(zoo.begin(), zoo.end(), [&](const auto& entry) { return entry.name == model; });
}

Result<void> ModelFlags::ChooseTask(base::Files& files, data::Input& input) {
  if (model.ends_with(".toml")) network = TRY(base::ReadAll(files, model));
  const auto is_text = [](const std::string& path) { return path.ends_with(".txt"); };
  if (model == "char-lstm" && input.options.format == "auto" &&
      std::all_of(input.paths.begin(), input.paths.end(), is_text))
    input.options.format = data::kTextFormat;
  if (IsNetwork() && optimizer == "lbfgs") return Error{Code::kInvalid, "--optimizer lbfgs does not go with networks"};
  if (model == "autoencoder") {
    input.labelled = false;
    input.options.task = data::Labels::Kind::kReal;
    if (loss != "auto" && loss != "squared")
      return Error{Code::kInvalid, "--model autoencoder goes with --loss squared only"};
    return {};
  }
  if (model == "kmeans" || model == "factorization") {
    if (optimizer == "lbfgs") return Error{Code::kInvalid, Str("--optimizer lbfgs does not go with --model ", model)};
    if (model == "kmeans") input.labelled = false;
    input.options.task = data::Labels::Kind::kReal;
    if (loss != "auto" && loss != "squared")
      return Error{Code::kInvalid, Str("--model ", model, " goes with --loss squared only")};
    return {};
  }
  if (loss != "auto") input.options.task = TRY(model::FindLoss(loss))->task();
  if (model == "fm" && loss == "softmax")
    return Error{Code::kInvalid, "--model fm goes with logistic, hinge or squared loss"};
  input.options.joint_ids = model == "fm";
  return {};
}

void ModelFlags::SettleDefaults(const data::Description& description) {
  const bool ratings = description.format == "ratings" && !description.joint_ids;
  if (model == "auto") model = ratings ? "factorization" : "linear";
  const bool factorization = model == "factorization";
  if (loss == "auto")
    loss = model == "kmeans" || model == "autoencoder" ? "squared" : model::DefaultLoss(description.labels.kind);
  // Standardised columns have one scale already; other features get the rule that does not mind theirs.
  const bool one_scale = model == "fm" || (description.dense && description.standardise);
  if (optimizer == "auto") {
    optimizer = one_scale ? "adagrad" : "adaptive";
    if (factorization && use == Use::kTraining) optimizer = "sgd";          // what has no end wants rates that settle
    if (IsNetwork()) optimizer = use == Use::kReplay ? "sgd" : "momentum";  // single rows pull too hard for momentum
    if (model == "char-lstm" && use == Use::kTraining) {  // its gradients differ by orders of magnitude
      optimizer = "adam";
      if (rate == 0) rate = 0.005;
    }
  }
  if (l2 < 0) l2 = factorization ? FactorDecay(use) : 0;
  if (rate > 0) return;
  if (factorization)
    rate = use == Use::kReplay ? (optimizer == "sgd" ? 0.02 : 0.1) : (optimizer == "sgd" ? 0.04 : 0.05);
  else if (optimizer == "adaptive" || optimizer == "adagrad")
    rate = std::round(150 * ManyFeatures(description)) / 1000;
  else if (optimizer == "adam")
    rate = 0.001;
  else if (optimizer == "sgd" || optimizer == "momentum")
    rate = 0.01;
  else
    rate = 0.1;
}

optimize::OptimizerOptions ModelFlags::Optimizer() const {
  optimize::OptimizerOptions options;
  options.kind = optimizer == "lbfgs" ? "sgd" : optimizer;
  options.schedule = {schedule, rate, decay, static_cast<std::uint64_t>(warmup)};
  options.l1 = l1;
  options.l2 = l2;
  options.momentum = momentum;
  options.beta1 = beta1;
  options.beta2 = beta2;
  return options;
}

Result<model::ModelConfig> ModelFlags::Config(const data::Description& description, base::Log& log) const {
  model::ModelConfig config;
  config.kind = model;
  config.loss = loss;
  config.dense = description.dense;
  config.features = description.dense ? description.features : features;
  config.classes = loss == "softmax" ? std::max<std::uint64_t>(1, description.labels.names.size()) : 1;
  config.factors = factors;
  config.clusters = clusters;
  config.spread = spread;
  config.seed = seed;
  if (IsNetwork()) return NetworkConfig(description, log);
  if (config.kind == "fm" && config.dense)
    return Error{Code::kInvalid, "--model fm needs sparse rows: LIBSVM, VW text, ratings, or a table with categories"};
  if (config.kind == "factorization" && description.format != "ratings")
    return Error{Code::kInvalid,
                 "--model factorization needs ratings (user item rating); use --format ratings or --model fm"};
  if (config.kind == "kmeans" && !config.dense) {
    if (description.bits > 0) config.features = std::uint64_t{1} << description.bits;
    if (config.features == 0)
      return Error{Code::kInvalid, "--model kmeans over sparse rows needs --features N or --bits N"};
  }
  return config;
}

Result<model::ModelConfig> ModelFlags::NetworkConfig(const data::Description& description, base::Log& log) const {
  if (!description.dense && features == 0)
    return Error{Code::kInvalid, Str("--model ", model, " over sparse rows needs --features N")};
  const auto shown = TRY(data::Augment::Make(description, {}));
  model::network::Fit fit;
  for (const std::uint64_t extent : shown.shape()) fit.input.push_back(static_cast<std::int64_t>(extent));
  if (fit.input.empty()) fit.input = {static_cast<std::int64_t>(description.dense ? description.features : features)};
  fit.classes =
      loss == "softmax" ? std::max<std::int64_t>(1, static_cast<std::int64_t>(description.labels.names.size())) : 1;
  const model::network::ZooOptions options{.hidden = static_cast<std::int64_t>(hidden), .dropout = dropout};
  std::vector<std::uint32_t> lines;
  const model::network::Graph graph = network.empty()
                                          ? TRY(model::network::MakeZoo(model, fit.input, fit.classes, options))
                                          : TRY(model::network::GraphFromToml(network, fit, &lines));
  const auto facts = TRY(model::network::Infer(graph));
  for (const std::string& remark : model::network::Remarks(graph, facts, loss, lines))
    log.Warn("network", "text", model, "remark", remark);
  model::ModelConfig config;
  config.kind = "network";
  config.loss = loss;
  config.dense = description.dense;
  config.features = static_cast<std::uint64_t>(facts[0].elements());
  config.classes =
      static_cast<std::uint64_t>(graph.target == model::network::Target::kInput ? facts[0].elements() : fit.classes);
  config.seed = seed;
  config.network = ToToml(graph);
  return config;
}

}  // namespace freshet::cli
