// That a back-end is all that a program knows of what computes it.

#include "model/network/backend.h"

#include <gtest/gtest.h>

#include "model/network/description.h"
#include "model/network/gradients_testing.h"
#include "model/network/network.h"
#include "model/network/reference_backend_testing.h"

namespace freshet::model::network {
namespace {

// Two ways from a layer to two heads, one of which is read again.
Graph TwoWays() {
  Graph graph({5});
  const int hidden = graph.Relu(graph.Dense(0, 8, "hidden"), 0.1);
  graph.AddHead(graph.Dense(graph.Relu(graph.Dense(hidden, 6, "long")), 3, "answer"));
  graph.AddHead(graph.Dense(hidden, 3, "short"), 0.5);
  return graph;
}

TEST(Backend, AnotherOneRunsTheSameProgramAndAgrees) {
  const Case made(TwoWays(), 4, 1);
  optimize::HeapMemory memory;
  const ReferenceBackend plain;
  const Outcome ours = Pipeline(made, {.backend = &plain}).Run(memory), theirs = Pipeline(made, {}).Run(memory);
  ExpectRightOutputs(made, true, ours, 1e-5);
  GradientCheck(made, ours).ExpectElements(20, 1e-3);
  for (std::size_t b = 0; b < ours.gradient.blocks.size(); ++b) {
    const auto want = theirs.gradient.blocks[b].memory();
    ExpectClose(ours.gradient.blocks[b].memory(), {want.begin(), want.end()}, 1e-5, 1e-6,
                made.parameters.block(b).name);
  }
  ExpectClose(ours.input_gradient, {theirs.input_gradient.begin(), theirs.input_gradient.end()}, 1e-5, 1e-6, "input");
}

TEST(Backend, MakesEveryKernelOfAProgramAndAddsItsGradients) {
  const Case made(TwoWays(), 4, 2);
  optimize::HeapMemory memory;
  const ReferenceBackend plain;
  Pipeline(made, {.threads = 3, .backend = &plain}).Run(memory);
  EXPECT_EQ(plain.kernels(), 6);  // a layer each: it fuses none
  EXPECT_EQ(plain.added(), 1);    // the gradient of the layer that two read
  EXPECT_EQ(plain.threads(), 1);  // as it was before
}

TEST(Backend, StagesHandOnWhatTheWholeComputes) {
  const Case made(TwoWays(), 3, 3);
  optimize::HeapMemory memory;
  const ReferenceBackend plain;
  const Outcome whole = Pipeline(made, {.backend = &plain}).Run(memory);
  const Outcome cut = Pipeline(made, {.cuts = {2, 4}, .backend = &plain}).Run(memory);
  for (std::size_t b = 0; b < whole.gradient.blocks.size(); ++b)
    EXPECT_EQ(Copy(cut.gradient.blocks[b].memory()), Copy(whole.gradient.blocks[b].memory()));
}

TEST(Backend, RefusesALayerItCannotCompute) {
  Graph graph({5});
  graph.AddHead(graph.Plain(Op::kTanh, graph.Dense(0, 3), "bent"));
  const ReferenceBackend plain;
  const auto program = Program::Compile(graph, {.backend = &plain});
  ASSERT_FALSE(program.ok());
  EXPECT_NE(program.error().text.find("'bent': the reference has no tanh"), std::string::npos) << program.error().text;
}

TEST(Backend, OfAModelComputesItsPredictionsAndUpdates) {
  ModelConfig config;
  config.kind = "network";
  config.loss = "softmax";
  config.dense = true;
  config.features = 5;
  config.classes = 3;
  config.network = ToToml(TwoWays());
  const ReferenceBackend plain;
  const auto reference = MakeNetwork(config, *FindLoss("softmax").value(), plain).value();
  const auto onednn = Model::Make(config).value();
  const std::vector<float> row = {0.5f, -1, 2, 0.25f, -0.75f};
  const float label[] = {2};
  data::Batch batch;
  batch.rows = 1;
  batch.labels = label;
  batch.dense = row.data();
  batch.width = row.size();
  const auto learned = [&](const Model& model) {
    optimize::HeapMemory memory;
    auto parameters = model.NewParameters(memory).value();
    const auto rule = optimize::Optimizer::Make({.kind = "sgd", .schedule = {.rate = 0.1}}, memory).value();
    EXPECT_TRUE(rule->Follow(parameters).ok());
    Workspace workspace;
    std::vector<float> scores(3);
    model.Update(parameters, batch, *rule, workspace, scores, optimize::Optimizer::Sharing::kAlone);
    model.Predict(parameters, batch, workspace, scores);
    return scores;
  };
  const std::vector<float> want = learned(*onednn);
  ExpectClose(learned(*reference), {want.begin(), want.end()}, 1e-5, 1e-6, "scores after a step");
  EXPECT_GT(plain.kernels(), 0);
}

}  // namespace
}  // namespace freshet::model::network
