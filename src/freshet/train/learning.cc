#include "train/learning.h"

#include <algorithm>
#include <cmath>

#include "base/option.h"
#include "data/formats/text.h"
#include "data/images/augment.h"
#include "model/network/description.h"
#include "model/network/remarks.h"
#include "model/network/zoo.h"

namespace freshet::train {
namespace {

// Many features that move a score together must each move it less: dense rows of more than 64 numbers get a lower rate.
double ManyFeatures(const data::Description& description) {
  constexpr double kFew = 64;
  if (!description.dense || static_cast<double>(description.features) <= kFew) return 1;
  return std::sqrt(kFew / static_cast<double>(description.features));
}

}  // namespace

bool Learning::IsNetwork() const {
  const auto zoo = model::network::Zoo();
  return model.ends_with(".toml") || model == "network" ||
         std::any_of(zoo.begin(), zoo.end(), [&](const auto& entry) { return entry.name == model; });
}

Result<void> Learning::ChooseTask(base::Files& files, data::Input& input) {
  if (model.ends_with(".toml")) network = TRY(base::ReadAll(files, model));
  const auto is_text = [](const std::string& path) { return path.ends_with(".txt"); };
  if (model == "char-lstm" && input.options.format == "auto" && !input.paths.empty() &&
      std::all_of(input.paths.begin(), input.paths.end(), is_text))
    input.options.format = data::kTextFormat;
  if (IsNetwork() && optimizer == "lbfgs")
    return Error{Code::kInvalid, Str(Option("optimizer"), " lbfgs does not go with networks")};
  if (model == "autoencoder") {
    input.labelled = false;
    input.options.task = data::Labels::Kind::kReal;
    if (loss != "auto" && loss != "squared")
      return Error{Code::kInvalid, Str(Option("model"), " autoencoder goes with ", Option("loss"), " squared only")};
    return {};
  }
  if (model == "kmeans" || model == "factorization") {
    if (optimizer == "lbfgs")
      return Error{Code::kInvalid, Str(Option("optimizer"), " lbfgs does not go with ", Option("model"), " ", model)};
    if (model == "kmeans") input.labelled = false;
    input.options.task = data::Labels::Kind::kReal;
    if (loss != "auto" && loss != "squared")
      return Error{Code::kInvalid, Str(Option("model"), " ", model, " goes with ", Option("loss"), " squared only")};
    return {};
  }
  if (loss != "auto") input.options.task = TRY(model::FindLoss(loss))->task();
  if (model == "fm" && loss == "softmax")
    return Error{Code::kInvalid, Str(Option("model"), " fm goes with logistic, hinge or squared loss")};
  input.options.joint_ids = model == "fm";
  return {};
}

void Learning::SettleDefaults(const data::Description& description) {
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
  if (l2 < 0) l2 = factorization ? FactorDecay() : 0;
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

optimize::OptimizerOptions Learning::Optimizer() const {
  optimize::OptimizerOptions options;
  options.kind = optimizer == "lbfgs" || optimizer == "coordinates" ? "sgd" : optimizer;
  options.schedule = {schedule, rate, decay, static_cast<std::uint64_t>(warmup)};
  options.l1 = l1;
  options.l2 = l2;
  options.momentum = momentum;
  options.beta1 = beta1;
  options.beta2 = beta2;
  return options;
}

Result<model::ModelConfig> Learning::Config(const data::Description& description, base::Log& log) const {
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
    return Error{Code::kInvalid,
                 Str(Option("model"), " fm needs sparse rows: LIBSVM, VW text, ratings, or a table with categories")};
  if (config.kind == "factorization" && description.format != "ratings")
    return Error{Code::kInvalid, Str(Option("model"), " factorization needs ratings (user item rating); use ",
                                     Option("format"), " ratings or ", Option("model"), " fm")};
  if (config.kind == "kmeans" && !config.dense) {
    if (description.bits > 0) config.features = std::uint64_t{1} << description.bits;
    if (config.features == 0)
      return Error{Code::kInvalid, Str(Option("model"), " kmeans over sparse rows needs ", Option("features"), " N or ",
                                       Option("bits"), " N")};
  }
  return config;
}

Result<model::ModelConfig> Learning::NetworkConfig(const data::Description& description, base::Log& log) const {
  if (!description.dense && features == 0)
    return Error{Code::kInvalid,
                 Str(Option("model"), " ", model, " over sparse rows needs ", Option("features"), " N")};
  const auto shown = TRY(data::Augment::Make(description, {}));
  model::network::Fit fit;
  for (const std::uint64_t extent : shown.shape()) fit.input.push_back(static_cast<std::int64_t>(extent));
  if (fit.input.empty()) fit.input = {static_cast<std::int64_t>(description.dense ? description.features : features)};
  fit.classes =
      loss == "softmax" ? std::max<std::int64_t>(1, static_cast<std::int64_t>(description.labels.names.size())) : 1;
  const model::network::ZooOptions options{.hidden = static_cast<std::int64_t>(hidden), .dropout = dropout};
  std::vector<std::uint32_t> lines;
  const model::network::Graph graph =
      network.empty() ? TRY(model::network::MakeZoo(model, fit.input, fit.classes, options))
                      : TRY(model::network::GraphFromToml(network, fit, &lines).While(Str("reading ", model)));
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

}  // namespace freshet::train
