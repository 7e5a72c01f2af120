// Labels that no class has, and what becomes of them.

#include <gtest/gtest.h>

#include "deploy/deployment_testing.h"
#include "model/network/description.h"
#include "model/network/zoo.h"

namespace freshet::deploy {
namespace {

constexpr std::size_t kFeatures = 4;

enum class Of { kDense, kSparse, kNetwork };
constexpr Of kAll[] = {Of::kDense, Of::kSparse, Of::kNetwork};

// A softmax model that knows the classes a and b.
model::TrainedModel Softmax(World& world, Of of) {
  model::ModelConfig config;
  config.loss = "softmax";
  config.classes = 2;
  data::Description description;
  description.labels.kind = data::Labels::Kind::kClasses;
  description.labels.names = {"a", "b"};
  description.labels.Index();
  description.format = of == Of::kSparse ? "libsvm" : "idx";
  if (of != Of::kSparse) {
    config.dense = description.dense = true;
    config.features = description.features = kFeatures;
  }
  if (of == Of::kNetwork) {
    config.kind = "network";
    model::network::Graph graph({kFeatures});
    graph.AddHead(graph.Dense(graph.Relu(graph.Dense(0, 8)), 2));
    config.network = model::network::ToToml(graph);
  }
  auto model = model::Model::Make(config);
  CHECK(model.ok());
  auto parameters = model.value()->NewParameters(world.memory).value();
  return {std::move(model).value(), std::move(parameters), std::move(description), {}};
}

// A row that belongs to a class by its first numbers alone.
data::Rows RowOf(const model::Model& model, std::size_t label, std::uint64_t n) {
  base::Random random(5, n);
  data::Rows rows;
  rows.width = model.config().dense ? kFeatures : 0;
  rows.ClearRows();
  for (std::uint32_t f = 0; f < kFeatures; ++f) {
    const auto value = static_cast<float>((f == label ? 3 : 0) + 0.3 * random.Normal());
    if (rows.width > 0) {
      rows.dense.Append(value);
    } else {
      rows.indices.Append(f);
      rows.values.Append(value);
    }
  }
  if (rows.width == 0) rows.offsets.Append(kFeatures);
  rows.labels.Append(data::Labels::kUnknown);
  return rows;
}

Result<LearnReply> Teach(Deployment& deployment, std::size_t label, const std::string& name, std::uint64_t n) {
  std::optional<Result<LearnReply>> reply;
  deployment.PostLearn(RowOf(deployment.model(), label, n), {}, {}, [&](auto answer) { reply = std::move(answer); },
                       {{0, name}});
  deployment.Settle();
  return std::move(*reply);
}

void TeachAll(Deployment& deployment, std::vector<std::string> names, std::uint64_t from, std::uint64_t count) {
  for (std::uint64_t n = from; n < from + count; ++n)
    ASSERT_TRUE(Teach(deployment, n % names.size(), names[n % names.size()], n).ok());
}

// What the model takes a row of that class for.
std::string Said(const Deployment& deployment, std::size_t label) {
  data::Rows rows = RowOf(deployment.model(), label, 77'777);
  model::Workspace workspace;
  std::vector<float> scores;
  deployment.models().Predict(0, rows, workspace, scores);
  const auto edition = deployment.Read(0);
  EXPECT_EQ(edition->description.labels.names.size(), scores.size());
  return edition->description.labels
      .names[static_cast<std::size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin())];
}

DeploymentOptions Options(World& world) {
  DeploymentOptions options = world.Options("a");
  options.optimizer.schedule.rate = 0.1;
  options.new_classes = 2;
  options.version_rows = 30;
  return options;
}

TEST(NewClasses, AreLearnedAndComeBackAfterAStart) {
  for (const Of of : kAll)
    for (const bool rebuilt : {false, true}) {
      SCOPED_TRACE(Str("model ", static_cast<int>(of), rebuilt ? ", rebuilt" : ", recovered"));
      World world;
      const DeploymentOptions options = Options(world);
      auto deployment = world.Open(options, Softmax(world, of), {.readers = 1}).value();
      TeachAll(*deployment, {"a", "b"}, 0, 60);
      EXPECT_EQ(Said(*deployment, 1), "b");
      TeachAll(*deployment, {"a", "b", "c"}, 60, 90);
      TeachAll(*deployment, {"a", "b", "c", "7"}, 150, 120);
      for (std::size_t label = 0; label < 4; ++label)
        EXPECT_EQ(Said(*deployment, label), (std::vector<std::string>{"a", "b", "c", "7"})[label]);
      EXPECT_GT(deployment->stats().iterations, 3u);
      EXPECT_EQ(deployment->stats().problem, "");
      const auto before = World::Fingerprint(*deployment);
      deployment.reset();
      if (rebuilt) world.KeepOnlyTheFirstVersion(options.directory);
      deployment = world.Open(options, Softmax(world, of), {.readers = 1}).value();
      EXPECT_EQ(World::Fingerprint(*deployment), before);
      EXPECT_EQ(Said(*deployment, 3), "7");
      EXPECT_EQ(Teach(*deployment, 0, "d", 1).error().code, Code::kBadInput);  // there was room for two
    }
}

TEST(NewClasses, AreThereAlsoWhereAnOlderVersionTakesOver) {
  for (const Of of : kAll) {
    SCOPED_TRACE(static_cast<int>(of));
    World world;
    const auto deployment = world.Open(Options(world), Softmax(world, of), {.readers = 1}).value();
    TeachAll(*deployment, {"a", "b"}, 0, 60);
    const std::uint64_t narrow = deployment->versions()->list().back().id;
    TeachAll(*deployment, {"a", "b", "c"}, 60, 60);
    bool rolled = false;
    deployment->PostRollBack(narrow, {}, false, [&](const auto& result) { rolled = result.ok(); });
    deployment->Settle();
    ASSERT_TRUE(rolled);
    EXPECT_EQ(Said(*deployment, 1), "b");
    EXPECT_EQ(deployment->model().scores(), 3u);
    TeachAll(*deployment, {"a", "b", "c"}, 120, 90);
    EXPECT_EQ(Said(*deployment, 2), "c");
  }
}

TEST(NewClasses, ComeByFeedbackToo) {
  World world;
  const auto deployment = world.Open(Options(world), Softmax(world, Of::kDense), {.readers = 1}).value();
  for (int n = 0; n < 30; ++n) {
    deployment->PostPrediction(Str("p", n), RowOf(deployment->model(), 2, 100), {}, {0.5f, 0.5f});
    deployment->PostFeedback(Str("p", n), {data::Labels::kUnknown},
                             [](const auto& reply) { EXPECT_EQ(reply.value().accepted, 1u); }, {}, {{0, "c"}});
    deployment->Settle();
  }
  EXPECT_EQ(Said(*deployment, 2), "c");
}

TEST(NewClasses, AreRefusedWhereTheModelCannotHaveThem) {
  World world;
  DeploymentOptions options = Options(world);
  const auto refused = world.Open(options, world.Dense());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_NE(refused.error().text.find("logistic"), std::string::npos) << refused.error().text;
  options.new_classes = 0;
  options.directory = "/b";
  const auto closed = world.Open(options, Softmax(world, Of::kSparse)).value();
  EXPECT_EQ(Teach(*closed, 2, "c", 0).error().code, Code::kBadInput);
}

}  // namespace
}  // namespace freshet::deploy
