// Columns on a ring in simulated time: what members send and how much of the computing each does.

#include <gtest/gtest.h>

#include "fabric/sim/star_flows.h"
#include "simulate/simulation.h"
#include "simulate/subject.h"

namespace freshet::simulate {
namespace {

constexpr std::uint64_t kBatch = 512;

Outcome Simulated(const std::string& strategy, int members, const std::string& features) {
  const Subject subject = Subject::Of("url-like", features).value();
  Scenario scenario;
  scenario.platform = fabric::sim::Platform::Known("ethernet-10g").value();
  scenario.platform.nodes = std::max(scenario.platform.nodes, members);
  scenario.nodes = members;
  scenario.strategy.kind = strategy;
  scenario.strategy.batch = kBatch;
  const auto costs = subject.CostsOn(scenario.platform).value();
  fabric::sim::StarFlows flows(scenario.platform);
  auto outcome = Simulate(scenario, *subject.model, *costs, flows);
  EXPECT_TRUE(outcome.ok()) << outcome.error().text;
  return outcome.value();
}

TEST(RingColumnsInTime, MembersSendTheSameWhateverTheModelAndAtMostTwiceThePartialsOfABatch) {
  for (const int members : {2, 8, 32}) {
    SCOPED_TRACE(Str(members, " members"));
    const double narrow = Simulated("ring", members, "20000").bytes_per_update;
    const double wide = Simulated("ring", members, "200000").bytes_per_update;
    EXPECT_EQ(narrow, wide);
    constexpr double kHead = 64;  // ours and the fabric's, of a message
    EXPECT_GE(wide, 2.0 * (members - 1) / members * kBatch * sizeof(float));
    EXPECT_LE(wide, 2.0 * kBatch * sizeof(float) + 2 * (members - 1) * kHead);
    EXPECT_GT(Simulated("allreduce", members, "200000").bytes_per_update, 3 * wide);
  }
}

TEST(RingColumnsInTime, EachComputesItsShareOfEveryRow) {
  const Outcome two = Simulated("ring", 2, "20000"), eight = Simulated("ring", 8, "20000");
  EXPECT_NEAR(two.times.compute / eight.times.compute, 4, 0.4);
}

TEST(RingColumnsInTime, OfDenseRowsMembersHaveNumbersEach) {
  Scenario scenario;
  scenario.platform = fabric::sim::Platform::Known("ethernet-10g").value();
  scenario.nodes = 4;
  scenario.strategy.kind = "ring";
  scenario.strategy.batch = kBatch;
  model::ModelConfig config;
  config.dense = true;
  config.features = 50;
  const auto model = model::Model::Make(config).value();
  fabric::sim::StarFlows flows(scenario.platform);
  const auto outcome = Simulate(scenario, *model, DescribedSparseCosts(50, 2, scenario.platform), flows);
  ASSERT_TRUE(outcome.ok()) << outcome.error().text;
  EXPECT_GE(outcome.value().bytes_per_update, 2.0 * 3 / 4 * kBatch * sizeof(float));
  EXPECT_LE(outcome.value().bytes_per_update, 2.0 * kBatch * sizeof(float) + 6 * 64);
}

}  // namespace
}  // namespace freshet::simulate
