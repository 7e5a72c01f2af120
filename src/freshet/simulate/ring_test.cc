// Pipelines in simulated time: how long members are idle, and what they send.

#include <gtest/gtest.h>

#include "fabric/sim/star_flows.h"
#include "model/network/description.h"
#include "simulate/simulation.h"
#include "strategy/ring/schedule_testing.h"

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
                          std::uint64_t micro, int stages = 0, Scenario scenario = {}) {
  scenario.platform = Fast(members);
  scenario.nodes = members;
  scenario.strategy.kind = graph.placed() ? "modules" : "ring";
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

// A chain that is placed as a ring would cut it is as idle as that.
TEST(ModulesInTime, OfAChainAreAsIdleAsARing) {
  for (const auto& [members, micro] : {std::pair(2, 4), {4, 8}, {4, 16}}) {
    model::network::Graph graph = Even(24);
    for (std::size_t layer = 1; layer < graph.layers.size(); ++layer)
      graph.layers[layer].place = Str("p", std::min<int>(static_cast<int>(layer - 1) * members / 25, members - 1));
    const auto outcome = Simulated(graph, members, "1f1b", static_cast<std::uint64_t>(micro));
    ASSERT_TRUE(outcome.ok()) << outcome.error().text;
    const double formula = (members - 1.0) / (micro + members - 1);
    EXPECT_NEAR(outcome.value().times.wait / outcome.value().times.total(), formula, 0.15 * formula)
        << members << " members, " << micro << " micro-batches";
  }
}

TEST(RingInTime, WithoutAFlushMembersAreHardlyIdle) {
  Scenario scenario;
  scenario.steps = 20;
  for (const auto& [members, micro] : {std::pair(2, 4), {4, 8}, {8, 16}}) {
    const auto outcome = Simulated(Even(24), members, "stash", static_cast<std::uint64_t>(micro), 0, scenario);
    ASSERT_TRUE(outcome.ok()) << outcome.error().text;
    EXPECT_LT(outcome.value().times.wait / outcome.value().times.total(), 0.02) << members << " members";
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

// Layers of which some cost several times as much as others.
model::network::Graph Uneven(int layers) {
  model::network::Graph graph({2});
  int at = graph.Dense(0, 256, "widen");
  for (int layer = 0; layer < layers; ++layer) at = graph.Dense(at, layer % 5 == 2 ? 640 : 256, Str("layer", layer));
  graph.AddHead(graph.Dense(at, 2, "scores"));
  return graph;
}

// What a step takes by the cut of these layers that makes the dearest member cheapest, of members that take so many times
// as long as others.
double BestStep(const model::network::Graph& graph, const std::vector<double>& slow, const std::string& pipeline,
                std::size_t micro) {
  const auto costs = DescribedCosts::Make(graph, Fast(1)).value();
  const std::size_t layers = graph.layers.size(), members = slow.size();
  std::vector<double> forward = {0}, backward = {0};  // of all layers before
  for (std::size_t layer = 1; layer < layers; ++layer) {
    const auto cost = costs.OfOneLayer(layer, 8, 1).value();
    forward.push_back(forward.back() + cost.forward);
    backward.push_back(backward.back() + cost.backward);
  }
  const auto between = [](const std::vector<double>& sums, std::size_t first, std::size_t last) {
    return sums[last] - sums[first];
  };
  // By dynamic programming: best[m][k], the dearest of the first m members when they hold the first k layers.
  constexpr double kNever = 1e30;
  std::vector<std::vector<double>> best(members + 1, std::vector<double>(layers, kNever));
  std::vector<std::vector<std::size_t>> from(members + 1, std::vector<std::size_t>(layers, 0));
  best[0][0] = 0;
  for (std::size_t m = 1; m <= members; ++m)
    for (std::size_t k = m; k < layers; ++k)
      for (std::size_t j = m - 1; j < k; ++j) {
        const double mine = slow[m - 1] * (between(forward, j, k) + between(backward, j, k));
        const double dearest = std::max(best[m - 1][j], mine);
        if (dearest < best[m][k]) best[m][k] = dearest, from[m][k] = j;
      }
  std::vector<double> stage_forward(members), stage_backward(members);
  for (std::size_t m = members, k = layers - 1; m > 0; k = from[m][k], --m) {
    stage_forward[m - 1] = slow[m - 1] * between(forward, from[m][k], k);
    stage_backward[m - 1] = slow[m - 1] * between(backward, from[m][k], k);
  }
  using namespace strategy::ring;
  const auto order = OrderOf(pipeline).value();
  return TimeOf(MakeSchedule(order, static_cast<int>(members), 1, micro), stage_forward, stage_backward).value();
}

// Seconds of a step after fifty.
double LaterStep(const model::network::Graph& graph, int members, const std::string& pipeline, std::uint64_t micro,
                 int stages, Scenario scenario) {
  double until[2] = {0, 0};
  for (int i = 0; i < 2; ++i) {
    scenario.steps = 49 + 10 * i;  // and one before
    const auto outcome = Simulated(graph, members, pipeline, micro, stages, scenario);
    EXPECT_TRUE(outcome.ok()) << outcome.error().text;
    if (!outcome.ok()) return 0;
    until[i] = outcome.value().step_seconds * scenario.steps;
  }
  return (until[1] - until[0]) / 10;
}

TEST(RingInTime, NeighboursFindABalanceAsGoodAsTheBestCutThoughOneIsSlow) {
  constexpr std::size_t kMicro = 16;
  for (const auto& [graph, name] : {std::pair(Even(24), "even"), {Even(40), "many"}, {Uneven(30), "uneven"}})
    for (int slow = 0; slow < 4; ++slow)
      for (const std::string pipeline : {"1f1b", "flush"}) {
        std::vector<double> times(4, 1);
        times[static_cast<std::size_t>(slow)] = 2;
        const double best = BestStep(graph, times, pipeline, kMicro);
        Scenario scenario;
        scenario.slow_node = slow;
        scenario.slow_times = 2;
        const double before = LaterStep(graph, 4, pipeline, kMicro, 0, scenario);
        scenario.strategy.balance = true;
        const double after = LaterStep(graph, 4, pipeline, kMicro, 0, scenario);
        RecordProperty(Str(name, "_", pipeline, "_", slow), Str(best / before, " ", best / after));
        EXPECT_LT(best / before, 0.8) << name << ", " << pipeline << ", member " << slow << " is slow";
        EXPECT_GE(best / after, 0.85) << name << ", " << pipeline << ", member " << slow << " is slow";
        EXPECT_LE(best / after, 1.02);  // what is compared with is what it says
      }
}

TEST(RingInTime, MembersOfSeveralStagesFindABalance) {
  Scenario scenario;
  scenario.slow_node = 1;
  scenario.slow_times = 2;
  const double before = LaterStep(Even(48), 4, "interleaved", 16, 2, scenario);
  scenario.strategy.balance = true;
  EXPECT_LT(LaterStep(Even(48), 4, "interleaved", 16, 2, scenario), 0.75 * before);
}

TEST(RingInTime, WhereAllIsEqualNothingMoves) {
  Scenario scenario;
  const double before = LaterStep(Even(23), 4, "1f1b", 16, 0, scenario);
  scenario.strategy.balance = true;
  EXPECT_NEAR(LaterStep(Even(23), 4, "1f1b", 16, 0, scenario), before, 0.001 * before);
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
