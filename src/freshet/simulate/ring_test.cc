// Pipelines in simulated time: how long members are idle, and what they send.

#include <gtest/gtest.h>

#include "fabric/sim/star_flows.h"
#include "model/network/description.h"
#include "simulate/simulation.h"

namespace freshet::simulate {
namespace {

// Layers that all cost the same, but for the first and the last, which cost next to nothing.
model::network::Graph Even(int layers) {
  model::network::Graph graph({2});
  int at = graph.Dense(0, 256, "widen");
  for (int layer = 0; layer < layers; ++layer) at = graph.Dense(at, 256, Str("layer", layer));
  graph.AddHead(graph.Dense(at, 2, "scores"));
  return graph;
}

// A cluster on whose links nothing takes long.
fabric::sim::Platform Fast(int nodes) {
  fabric::sim::Platform platform;
  platform.nodes = nodes;
  platform.cores = 1;
  platform.memory_gb_s = 1000;
  platform.link_gbit = 10'000;
  platform.link_us = 0.1;
  platform.message_us = 0.1;
  platform.copy_gb_s = platform.add_gb_s = 1000;
  return platform;
}

Result<Outcome> Simulated(const model::network::Graph& graph, int members, const std::string& pipeline,
                          std::uint64_t micro, int stages = 0) {
  Scenario scenario;
  scenario.platform = Fast(members);
  scenario.nodes = members;
  scenario.strategy.kind = "ring";
  scenario.strategy.pipeline = pipeline;
  scenario.strategy.micro = micro;
  scenario.strategy.stages = stages;
  scenario.strategy.batch = 8 * micro;
  model::ModelConfig config;
  config.kind = "network";
  config.loss = "softmax";
  config.dense = true;
  config.features = 2;
  config.classes = 2;
  config.network = ToToml(graph);
  const auto model = TRY(model::Model::Make(config));
  const auto costs = TRY(DescribedCosts::Make(graph, scenario.platform));
  fabric::sim::StarFlows flows(scenario.platform);
  return Simulate(scenario, *model, costs, flows);
}

double IdleShare(int members, const std::string& pipeline, std::uint64_t micro, int stages = 0) {
  const auto outcome = Simulated(Even(24), members, pipeline, micro, stages);
  EXPECT_TRUE(outcome.ok()) << outcome.error().text;
  return outcome.ok() ? outcome.value().times.wait / outcome.value().times.total() : -1;
}

TEST(RingInTime, MembersAreIdleWhileAPipelineFillsAndDrainsAsTheFormulaSays) {
  for (const std::string pipeline : {"flush", "1f1b"})
    for (const auto& [members, micro] : {std::pair(2, 4), {2, 8}, {4, 4}, {4, 16}, {8, 16}}) {
      const double formula = (members - 1.0) / (micro + members - 1);
      EXPECT_NEAR(IdleShare(members, pipeline, static_cast<std::uint64_t>(micro)), formula, 0.1 * formula)
          << pipeline << ", " << members << " members, " << micro << " micro-batches";
    }
}

TEST(RingInTime, StagesThatAreInterleavedDivideThat) {
  for (const auto& [members, micro, stages] : {std::tuple(2, 4, 2), {4, 8, 2}, {4, 8, 3}, {8, 16, 3}}) {
    const double formula = (members - 1.0) / (stages * micro + members - 1);
    EXPECT_NEAR(IdleShare(members, "interleaved", static_cast<std::uint64_t>(micro), stages), formula, 0.1 * formula)
        << members << " members of " << stages << " stages, " << micro << " micro-batches";
  }
}

// What a member in the midst of the ring sends is the activations one way and their gradients the other, and some bytes
// of tidings, however many there are.
TEST(RingInTime, AMemberSendsAsMuchHoweverManyThereAre) {
  constexpr std::uint64_t kMicro = 8;
  const double edge = 2.0 * 256 * sizeof(float) * 8 * kMicro;  // there and back, between two members
  for (const int members : {2, 4, 8, 24}) {
    const auto outcome = Simulated(Even(24), members, "1f1b", kMicro);
    ASSERT_TRUE(outcome.ok()) << outcome.error().text;
    EXPECT_NEAR(outcome.value().bytes_per_update * members / (members - 1), edge, 0.1 * edge) << members << " members";
  }
}

TEST(RingInTime, OfModelsThatARingCannotCutItIsRefused) {
  Scenario scenario;
  scenario.platform = Fast(2);
  scenario.nodes = 2;
  scenario.strategy.kind = "ring";
  model::ModelConfig config;
  config.kind = "factorization";
  const auto model = model::Model::Make(config).value();
  fabric::sim::StarFlows flows(scenario.platform);
  const auto refused = Simulate(scenario, *model, DescribedSparseCosts(10, 2, scenario.platform), flows);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().text.find("networks"), std::string::npos) << refused.error().text;
}

}  // namespace
}  // namespace freshet::simulate
