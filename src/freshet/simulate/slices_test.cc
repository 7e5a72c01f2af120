// Slices of wide layers in simulated time: what is sent, and that no worker computes more than its share.

#include <gtest/gtest.h>

#include "fabric/sim/star_flows.h"
#include "model/network/description.h"
#include "model/network/slicing.h"
#include "simulate/simulation.h"

namespace freshet::simulate {
namespace {

using model::network::NumbersSent;
using Cut = model::network::Slicing::Cut;
constexpr std::uint64_t kRows = 64;
constexpr int kWorkers = 4;

// 2,048 numbers by way of 1,024 and 512 to 8 scores.
Outcome Simulated(const std::string& strategy, int workers = kWorkers, int group = 2) {
  model::network::Graph graph({2048});
  const int wide = graph.Relu(graph.Dense(0, 1024, "wide"));
  graph.AddHead(graph.Dense(graph.Relu(graph.Dense(wide, 512, "less")), 8, "scores"));
  Scenario scenario;
  scenario.platform.nodes = workers;
  scenario.platform.cores = 1;
  scenario.nodes = workers;
  scenario.strategy.kind = strategy;
  scenario.strategy.batch = kRows;
  scenario.strategy.group = group;
  model::ModelConfig config;
  config.kind = "network";
  config.loss = "softmax";
  config.dense = true;
  config.features = 2048;
  config.classes = 8;
  config.network = ToToml(graph);
  const auto model = model::Model::Make(config).value();
  const auto costs = DescribedCosts::Make(graph, scenario.platform).value();
  fabric::sim::StarFlows flows(scenario.platform);
  auto outcome = Simulate(scenario, *model, costs, flows);
  EXPECT_TRUE(outcome.ok()) << outcome.error().text;
  return outcome.ok() ? std::move(outcome).value() : Outcome();
}

constexpr model::network::Wide kWide{2048, 1024, false}, kLess{1024, 512};

double Floats(int workers, std::uint64_t rows) {
  return NumbersSent(Cut::kInputs, kWide, workers, rows) + NumbersSent(Cut::kInputs, kLess, workers, rows);
}
double Weights(int workers) {
  return NumbersSent(Cut::kWhole, kWide, workers, kRows) + NumbersSent(Cut::kWhole, kLess, workers, kRows);
}
double Biases(int workers) { return NumbersSent(Cut::kWhole, {1, 512 * 8 + 1024 + 512 + 8}, workers, kRows); }

TEST(SlicesInTime, SendWhatGoesInAndOutOfWideLayers) {
  const double expected = sizeof(float) * (Floats(kWorkers, kRows) + Biases(kWorkers));
  const Outcome sliced = Simulated("slices");
  EXPECT_NEAR(sliced.bytes_per_update, expected, 0.02 * expected);
  const Outcome whole = Simulated("allreduce");
  const double weights = sizeof(float) * (Weights(kWorkers) + Biases(kWorkers));
  EXPECT_NEAR(whole.bytes_per_update, weights, 0.02 * weights);
  EXPECT_LT(sliced.step_seconds, whole.step_seconds);
}

TEST(SlicesInTime, OfGroupsAreSummedAcrossThem) {
  const double expected = sizeof(float) * (Floats(2, kRows / 2) + Biases(4) + Weights(2) / 2);
  EXPECT_NEAR(Simulated("hybrid").bytes_per_update, expected, 0.02 * expected);
}

}  // namespace
}  // namespace freshet::simulate
