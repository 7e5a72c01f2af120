#pragma once

#include <gtest/gtest.h>

#include <regex>

#include "base/random.h"
#include "deploy/deployment.h"
#include "deploy/log/journal_testing.h"

namespace freshet::deploy {

// What tests of deployments share: a world to open them in, models to begin with, and rows to send.
class World : public Lab {
 public:
  optimize::HeapMemory memory;
  LocalRuntime runtime;

  // A linear model of dense, standardised rows that has learned nothing.
  model::TrainedModel Dense(std::uint64_t features = 3) {
    model::ModelConfig config;
    config.dense = true;
    config.features = features;
    data::Description description;
    description.format = "csv";
    description.delimiter = ",";
    description.header = true;
    for (std::uint64_t f = 0; f < features; ++f)
      description.columns.push_back({Str("x", f + 1), data::Column::Kind::kNumber});
    description.columns.push_back({"label", data::Column::Kind::kLabel});
    description.dense = description.standardise = true;
    description.features = features;
    description.moments = data::Moments(features);
    description.labels.kind = data::Labels::Kind::kBinary;
    description.labels.names = {"0", "1"};
    description.labels.Index();
    return Make(config, std::move(description));
  }

  // A linear model of numbers far from one, which has seen none of them.
  model::TrainedModel Prices() {
    model::TrainedModel dense = Dense();
    model::ModelConfig config = dense.model->config();
    config.loss = "squared";
    data::Description description = dense.description;
    description.labels = {};
    description.labels.kind = data::Labels::Kind::kReal;
    description.target = data::Target::Moving();
    return Make(config, std::move(description));
  }

  // A linear model of sparse rows.
  model::TrainedModel Sparse() {
    model::ModelConfig config;
    data::Description description;
    description.format = "libsvm";
    description.labels.kind = data::Labels::Kind::kBinary;
    description.labels.names = {"-1", "1"};
    description.labels.Index();
    return Make(config, std::move(description));
  }

  model::TrainedModel Ratings(std::uint64_t factors = 4) {
    model::ModelConfig config;
    config.kind = "factorization";
    config.loss = "squared";
    config.factors = factors;
    data::Description description;
    description.format = "ratings";
    description.delimiter = "::";
    description.columns = {{"user", data::Column::Kind::kCategory},
                           {"item", data::Column::Kind::kCategory},
                           {"rating", data::Column::Kind::kLabel}};
    description.labels.kind = data::Labels::Kind::kReal;
    description.dictionaries.resize(2);
    return Make(config, std::move(description));
  }

  DeploymentOptions Options(const std::string& name = "") {
    DeploymentOptions options;
    options.directory = name.empty() ? "" : "/" + name;
    options.optimizer.kind = "adagrad";
    options.schedule.max_buffer_size = 50;
    options.data.rate.rate = 0.2;
    options.version_rows = 0;
    options.data.remembered_ids = 1000;
    return options;
  }

  Result<std::unique_ptr<Deployment>> Open(DeploymentOptions options, model::TrainedModel start,
                                           Deployment::Doors doors = {}) {
    return Deployment::Open(env, std::move(options), runtime, memory, std::move(start), std::move(doors));
  }

  // Row n of a made-up stream of the model's form.
  static data::Rows Row(const model::Model& model, std::uint64_t n, std::vector<data::NewName>* names = nullptr) {
    base::Random random(7, n);
    data::Rows rows;
    rows.width = model.config().dense ? model.config().features : 0;
    rows.ClearRows();
    if (model.config().kind == "factorization") {
      const std::uint64_t user = random.Below(20), item = random.Below(30);
      rows.labels.Append(static_cast<float>(1 + (user + item) % 5));
      for (std::uint32_t space = 0; space < 2; ++space) {
        if (names != nullptr) names->push_back({space, space, Str(space == 0 ? "u" : "i", space == 0 ? user : item)});
        rows.indices.Append(data::kUnseen);
        rows.values.Append(1);
      }
      rows.offsets.Append(2);
      return rows;
    }
    float sum = 0;
    const std::uint64_t entries = rows.width > 0 ? rows.width : 5;
    for (std::uint64_t e = 0; e < entries; ++e) {
      const auto value = static_cast<float>(random.Normal());
      sum += e % 2 == 0 ? value : -value;
      if (rows.width > 0) {
        rows.dense.Append(value);
      } else {
        rows.indices.Append(static_cast<std::uint32_t>(e * 10 + random.Below(10)));
        rows.values.Append(value);
      }
    }
    if (rows.width == 0) rows.offsets.Append(static_cast<std::uint32_t>(rows.indices.size()));
    const bool price = model.config().loss == "squared";
    rows.labels.Append(price ? 180'000 + 40'000 * sum : sum > 0 ? 1.0f : 0.0f);
    return rows;
  }

  // Sends row n, with an id if one is given; returns the answer after the deployment has settled.
  static Result<LearnReply> Send(Deployment& deployment, std::uint64_t n, std::string id = "") {
    std::optional<Result<LearnReply>> reply;
    std::vector<data::NewName> names;
    data::Rows rows = Row(deployment.model(), n, &names);
    deployment.PostLearn(std::move(rows), std::move(names), id.empty() ? std::vector<std::string>() : std::vector{id},
                         [&](Result<LearnReply> answer) { reply = std::move(answer); });
    deployment.Settle();
    CHECK(reply.has_value());
    return std::move(*reply);
  }
  static void SendMany(Deployment& deployment, std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t n = first; n < first + count; ++n) ASSERT_TRUE(Send(deployment, n).ok());
  }

  // Everything that makes two deployments the same, as far as it can be seen while they run: weights, optimizer state,
  // moments, dictionaries, quality.
  static std::vector<double> Fingerprint(const Deployment& deployment) {
    const State& state = deployment.models().state();
    std::vector<double> all;
    const auto add = [&](const std::vector<float>& values) { all.insert(all.end(), values.begin(), values.end()); };
    for (std::size_t b = 0; b < state.parameters.blocks(); ++b) {
      add(state.parameters.Gather(b));
      add(state.parameters.GatherBeside(b));
      add(state.optimizer->state().Gather(b));
    }
    for (const double value : state.moments.Save()) all.push_back(value);
    for (const double value : {state.target.mean(), state.target.deviation(), state.target.squares()})
      all.push_back(value);
    for (const auto& dictionary : deployment.models().description().dictionaries)
      all.push_back(static_cast<double>(base::Hash64(dictionary.Serialize())));
    for (const double value : deployment.stats().quality.Save()) all.push_back(value);
    all.push_back(static_cast<double>(deployment.stats().iterations));
    return all;
  }

  // The same, with all else that a deployment remembers: what its last version says after Close.
  static std::string Remembered(Deployment& deployment) {
    EXPECT_TRUE(deployment.Close().ok());
    const auto versions = deployment.versions()->list();
    EXPECT_TRUE(!versions.empty());
    const std::string vitals = deployment.versions()->LoadVitals(versions.back().id).value();
    return std::regex_replace(vitals, std::regex("set-[0-9-]+"), "set");  // how its data sets are called may differ
  }

  // So that the next start has to go through the whole log.
  void KeepOnlyTheFirstVersion(const std::string& directory) {
    for (const auto& [path, bytes] : disk.Snapshot()) {
      const bool later = path.find("/00000000000000000000.") == std::string::npos;
      if (path.starts_with(directory + "/versions/") && later) CHECK(disk.Remove(path).ok());
    }
  }

 private:
  model::TrainedModel Make(const model::ModelConfig& config, data::Description description) {
    auto model = model::Model::Make(config);
    CHECK(model.ok());
    auto parameters = model.value()->NewParameters(memory);
    CHECK(parameters.ok());
    return {std::move(model).value(), std::move(parameters).value(), std::move(description), {}};
  }
};

}  // namespace freshet::deploy
