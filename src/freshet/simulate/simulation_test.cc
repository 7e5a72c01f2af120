#include "simulate/simulation.h"

#include <gtest/gtest.h>

#include "fabric/sim/star_flows.h"
#include "simulate/subject.h"
#include "strategy/synchronous.h"

namespace freshet::simulate {
namespace {

using fabric::Algorithm;

fabric::sim::Platform Star(int nodes) {
  fabric::sim::Platform platform;
  platform.name = "test";
  platform.nodes = nodes;
  platform.cores = 4;
  platform.core_gflops = 100;
  platform.memory_gb_s = 100;
  platform.link_gbit = 8;
  platform.share = 1;
  platform.link_us = 10;
  return platform;
}

// A network of the zoo, and what it costs on a platform.
struct Priced {
  Priced(const std::string& name, const fabric::sim::Platform& platform)
      : subject(Subject::Of(name).value()), costs(DescribedCosts::Make(subject.graph, platform).value()) {}
  Subject subject;
  DescribedCosts costs;
};

Outcome OutcomeOf(const Scenario& scenario, const Priced& priced) {
  fabric::sim::StarFlows flows(scenario.platform);
  auto outcome = Simulate(scenario, *priced.subject.model, priced.costs, flows);
  EXPECT_TRUE(outcome.ok()) << outcome.error().text;
  return outcome.ok() ? std::move(outcome).value() : Outcome{};
}

TEST(Simulation, ARingTakesWhatItsBytesTakeAndSendsTheBytesOfARing) {
  Scenario scenario;
  scenario.platform = Star(8);
  scenario.nodes = 8;
  scenario.strategy.batch = 256;
  scenario.strategy.overlap = false;
  scenario.collectives.algorithm = Algorithm::kRing;
  const Priced priced("alexnet", scenario.platform);
  const Outcome outcome = OutcomeOf(scenario, priced);
  const double ring = 2.0 * 7 / 8 * priced.subject.parameter_bytes;
  EXPECT_NEAR(outcome.bytes_per_update, ring, 0.01 * ring);
  EXPECT_NEAR(outcome.times.exchange + outcome.times.wait, ring / 1e9, 0.15 * ring / 1e9);
  const StepCost cost = priced.costs.Of(32, 4);
  EXPECT_NEAR(outcome.times.compute, cost.compute, 0.01 * cost.compute);
  EXPECT_NEAR(outcome.times.apply, cost.apply, 0.01 * cost.apply);
  EXPECT_NEAR(outcome.step_seconds, outcome.times.total(), 0.02 * outcome.step_seconds);
}

TEST(Simulation, ADriverIsTheBottleneckOfCentralSums) {
  Scenario scenario;
  scenario.platform = Star(8);
  scenario.nodes = 8;
  scenario.strategy.kind = "average";
  scenario.strategy.every = 3;
  scenario.strategy.batch = 256;
  scenario.collectives.algorithm = Algorithm::kCentral;
  const Priced priced("alexnet", scenario.platform);
  const Outcome outcome = OutcomeOf(scenario, priced);
  // Everybody else's parameters go into node 0 and come out again, once in three updates.
  EXPECT_GT(outcome.times.exchange + outcome.times.wait, 2 * 7 * priced.subject.parameter_bytes / 1e9 / 3);
  EXPECT_TRUE(outcome.links.front().name.find("node 0") == 0) << outcome.links.front().name;
}

TEST(Simulation, OverlapHidesWhatTravelsMeanwhile) {
  Scenario scenario;
  scenario.platform = Star(4);
  scenario.platform.link_gbit = 80;
  scenario.nodes = 4;
  scenario.strategy.batch = 256;
  const Priced priced("googlenet", scenario.platform);
  scenario.strategy.overlap = false;
  const Outcome apart = OutcomeOf(scenario, priced);
  scenario.strategy.overlap = true;
  const Outcome beside = OutcomeOf(scenario, priced);
  EXPECT_LT(beside.step_seconds, apart.step_seconds);
  EXPECT_LT(beside.times.exchange + beside.times.wait, 0.5 * (apart.times.exchange + apart.times.wait));
}

TEST(Simulation, CodecsSendWhatTheySay) {
  Scenario scenario;
  scenario.platform = Star(4);
  scenario.nodes = 4;
  scenario.strategy.batch = 128;
  const Priced priced("lenet5", scenario.platform);
  const double plain = OutcomeOf(scenario, priced).bytes_per_update;
  const std::pair<const char*, double> shares[] = {{"fp16", 0.5}, {"int8", 0.252}, {"1bit", 0.0332}, {"topk", 0.0082}};
  for (const auto& [codec, share] : shares) {
    SCOPED_TRACE(codec);
    scenario.strategy.codec = codec;
    EXPECT_NEAR(OutcomeOf(scenario, priced).bytes_per_update / plain, share, 0.2 * share + 0.005);
  }
}

TEST(Simulation, EveryStrategyAndTopologyEnds) {
  const fabric::sim::Platform platform = Star(6);
  const Priced priced("lenet5", platform);
  for (const std::string& kind : strategy::Synchronous::Kinds())
    for (const std::string& name : fabric::AlgorithmNames()) {
      SCOPED_TRACE(Str(kind, " ", name));
      if (name == "native") continue;  // which only engines have
      Scenario scenario;
      scenario.platform = platform;
      scenario.nodes = 6;
      scenario.workers_per_node = 2;
      scenario.strategy.kind = kind;
      scenario.strategy.batch = 120;
      scenario.strategy.every = 2;
      scenario.collectives.algorithm = fabric::AlgorithmOf(name).value();
      const Outcome outcome = OutcomeOf(scenario, priced);
      EXPECT_GT(outcome.rows_per_second, 0);
      EXPECT_GT(outcome.times.compute, 0);
    }
}

TEST(Simulation, ASlowNodeMakesAllWaitAndASlowDiskToo) {
  Scenario scenario;
  scenario.platform = Star(4);
  scenario.nodes = 4;
  scenario.strategy.batch = 128;
  const Priced priced("googlenet", scenario.platform);
  const Outcome even = OutcomeOf(scenario, priced);
  scenario.slow_node = 2;
  scenario.slow_times = 2;
  const Outcome uneven = OutcomeOf(scenario, priced);
  EXPECT_GT(uneven.step_seconds, 1.6 * even.step_seconds);
  EXPECT_EQ(uneven.Bottleneck(), "stragglers");
  scenario.slow_node = -1;
  scenario.row_bytes = 3 * 224 * 224;
  scenario.platform.disk_mb_s = 2;
  const Outcome reading = OutcomeOf(scenario, priced);
  EXPECT_NEAR(reading.step_seconds, 32 * 3 * 224 * 224 / 2e6, 0.1 * reading.step_seconds);
  EXPECT_EQ(reading.Bottleneck(), "disk");
}

TEST(Simulation, TheSameScenarioIsTheSameOutcome) {
  Scenario scenario;
  scenario.platform = Star(5);
  scenario.nodes = 5;
  scenario.strategy.batch = 100;
  const Priced priced("lenet5", scenario.platform);
  const Outcome one = OutcomeOf(scenario, priced), other = OutcomeOf(scenario, priced);
  EXPECT_EQ(one.step_seconds, other.step_seconds);
  EXPECT_EQ(one.letters, other.letters);
}

TEST(Simulation, RefusesWhatCannotBe) {
  Scenario scenario;
  scenario.platform = Star(4);
  const Priced priced("lenet5", scenario.platform);
  const auto refusal = [&](const Scenario& wrong) {
    fabric::sim::StarFlows flows(scenario.platform);
    const auto outcome = Simulate(wrong, *priced.subject.model, priced.costs, flows);
    return outcome.ok() ? "" : outcome.error().text;
  };
  Scenario wrong = scenario;
  wrong.nodes = 5;
  EXPECT_EQ(refusal(wrong), "5 nodes of test: it has 4");
  wrong = scenario;
  wrong.workers_per_node = 2'000'000;
  EXPECT_EQ(refusal(wrong), "2000000 workers on each of 1 nodes: expected 1 or more, and at most 1000000 in all");
  wrong = scenario;
  wrong.nodes = 4;
  wrong.strategy.batch = 3;
  EXPECT_EQ(refusal(wrong), "batch 3 of 4 workers: expected a row or more for each");
  wrong = scenario;
  wrong.platform.link_gbit = 0;
  EXPECT_NE(refusal(wrong).find("platform test: "), std::string::npos);
}

// What touched rows send depends on which they are: as much as the real sum of the same rows.
TEST(Simulation, SparseModelsSendWhatTheirRowsAre) {
  Scenario scenario;
  scenario.platform = Star(4);
  scenario.nodes = 4;
  scenario.strategy.batch = 64;
  scenario.collectives.algorithm = Algorithm::kRing;
  const Subject subject = Subject::Of("url-like").value();
  const auto costs = subject.CostsOn(scenario.platform).value();
  fabric::sim::StarFlows flows(scenario.platform);
  const auto few = Simulate(scenario, *subject.model, *costs, flows);
  ASSERT_TRUE(few.ok()) << few.error().text;
  // Of 64 rows with about 95 entries each, most of which nobody else has: four bytes of value, fewer than three of place.
  EXPECT_GT(few.value().bytes_per_update, 64 * 40 * 4.0);
  EXPECT_LT(few.value().bytes_per_update, 64 * 95 * 8.0 * 2);
  EXPECT_GT(few.value().times.compute, 0);
  EXPECT_GT(few.value().times.apply, few.value().times.compute);  // of everybody's rows
  scenario.strategy.batch = 256;
  const auto many = Simulate(scenario, *subject.model, *costs, flows);
  ASSERT_TRUE(many.ok());
  EXPECT_GT(many.value().bytes_per_update, 2.5 * few.value().bytes_per_update);
  EXPECT_GT(many.value().step_seconds, few.value().step_seconds);
}

}  // namespace
}  // namespace freshet::simulate
