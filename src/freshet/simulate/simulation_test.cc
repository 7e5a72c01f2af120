#include "simulate/simulation.h"

#include <gtest/gtest.h>

#include "base/hollow.h"
#include "fabric/sim/star_flows.h"
#include "simulate/costed_model.h"
#include "simulate/steps.h"
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
  wrong.strategy.backup = 1;
  EXPECT_NE(refusal(wrong).find("is not simulated by costs alone"), std::string::npos);
  wrong = scenario;
  wrong.platform.link_gbit = 0;
  EXPECT_NE(refusal(wrong).find("platform test: "), std::string::npos);
}

Scenario Served(int workers, int servers, const std::string& synchrony = "bsp") {
  Scenario scenario;
  scenario.platform = Star(workers + servers);
  scenario.nodes = workers;
  scenario.strategy.kind = "server";
  scenario.strategy.servers = servers;
  scenario.strategy.synchrony = synchrony;
  scenario.strategy.batch = 32 * static_cast<std::uint64_t>(workers);
  return scenario;
}

TEST(ServedSimulation, EverySynchronyEndsTheSameWayEachTime) {
  for (const char* const synchrony : {"bsp", "ssp:2", "asp:0.01", "bap"})
    for (const int servers : {0, 1, 3}) {
      SCOPED_TRACE(Str(synchrony, ", ", servers, " servers"));
      const Scenario scenario = Served(4, servers, synchrony);
      const Priced priced("lenet5", scenario.platform);
      const Outcome one = OutcomeOf(scenario, priced), other = OutcomeOf(scenario, priced);
      EXPECT_GT(one.rows_per_second, 0);
      const StepCost cost = priced.costs.Of(32, 4);
      EXPECT_GT(one.times.compute, 0.999 * cost.compute);
      EXPECT_LT(one.times.compute, 1.25 * cost.compute);       // who serves, too, has less of its cores
      EXPECT_LT(one.times.total(), 1.001 * one.step_seconds);  // a mean, and what the slowest takes
      EXPECT_GT(one.times.total(), 0.7 * one.step_seconds);
      EXPECT_EQ(one.step_seconds, other.step_seconds);
      EXPECT_EQ(one.letters, other.letters);
    }
}

// A worker sends its gradient, and servers what they were asked for; heads are little.
TEST(ServedSimulation, WhatIsSentIsWhatLettersAmountTo) {
  for (const char* const synchrony : {"bsp", "bap"}) {
    const Scenario scenario = Served(4, 2, synchrony);
    const Priced priced("alexnet", scenario.platform);
    const Outcome outcome = OutcomeOf(scenario, priced);
    EXPECT_NEAR(outcome.bytes_per_update, priced.subject.parameter_bytes, 0.01 * priced.subject.parameter_bytes);
    double to_servers = 0, from_servers = 0;
    for (const fabric::sim::Flows::Link& link : outcome.links)
      for (const int node : {4, 5}) {
        if (link.name == Str("node ", node, " in")) to_servers += link.bytes;
        if (link.name == Str("node ", node, " out")) from_servers += link.bytes;
      }
    const double all = 4 * 4 * priced.subject.parameter_bytes;  // workers, and steps with the first
    EXPECT_NEAR(to_servers, all, 0.01 * all);
    EXPECT_NEAR(from_servers, all, 0.01 * all);
  }
}

TEST(ServedSimulation, MoreServersHelpUntilTheKnee) {
  const Priced priced("lenet5", Star(1));
  std::vector<double> speeds;
  for (const int servers : {1, 2, 4, 8, 16, 32, 64})
    speeds.push_back(OutcomeOf(Served(8, servers), priced).rows_per_second);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_GT(speeds[i], 1.1 * speeds[i - 1]) << i;
  EXPECT_GT(speeds[4], 2.5 * speeds[0]);
  EXPECT_LT(speeds[6], 1.1 * speeds[5]);  // then there are more letters, not fewer bytes
}

// A server adds and applies by one core, for as long as the bytes of its shard take.
TEST(ServedSimulation, WhatAServerDoesTakesItsTime) {
  Scenario scenario = Served(4, 1);
  scenario.platform.link_gbit = 8000;
  scenario.platform.copy_gb_s = 1e6;
  scenario.platform.message_us = 0;
  const Priced priced("alexnet", scenario.platform);
  const double bytes = priced.subject.parameter_bytes, compute = priced.costs.Of(32, 4).compute;
  const auto exchange = [&] { return OutcomeOf(scenario, priced).step_seconds - compute; };
  scenario.platform.add_gb_s = 1;
  const double slow_sum = exchange();
  scenario.platform.add_gb_s = 1e6;
  EXPECT_NEAR(slow_sum - exchange(), 3 * bytes / 1e9, 0.05 * 3 * bytes / 1e9);  // once for each worker after the first
  const double fast = exchange();
  scenario.platform.memory_gb_s /= 4;
  EXPECT_NEAR(exchange() - fast, 3 * 5 * bytes / 25e9, 0.05 * 3 * 5 * bytes / 25e9);  // once for all, five passes
  scenario.strategy.servers = 4;
  scenario.platform.nodes = 8;
  EXPECT_NEAR(exchange(), 5 * bytes / 25e9, 0.25 * 5 * bytes / 25e9);  // four times as fast, each with its share
}

// Who is far from the servers computes while what it has asked for is on its way, if it reads ahead.
TEST(ServedSimulation, ApproximateWorkersDoNotWaitForTheWay) {
  const auto seconds = [](const char* synchrony) {
    Scenario scenario = Served(4, 2, synchrony);
    scenario.platform.link_us = 10'000;
    scenario.steps = 50;
    return OutcomeOf(scenario, Priced("lenet5", scenario.platform)).step_seconds;
  };
  const double approximate = seconds("asp:0.01"), waits = seconds("bap");
  EXPECT_GT(waits, 0.04);
  EXPECT_LT(approximate, waits);
}

// What is hollow takes the time of what is not, letter for letter.
TEST(ServedSimulation, NumbersThatAreNotThereTakeTheTimeOfThoseThatAre) {
  const Subject subject = Subject::Of("mlp", "200").value();
  for (const char* const synchrony : {"bsp", "ssp:2", "bap"})
    for (const int servers : {0, 2}) {
      SCOPED_TRACE(Str(synchrony, ", ", servers, " servers"));
      const fabric::sim::Platform platform = Star(3 + servers);
      const auto costs = subject.CostsOn(platform).value();
      const auto run = [&](CostedModel::Values values) {
        const bool real = values == CostedModel::Values::kReal;
        fabric::sim::StarFlows flows(platform);
        fabric::sim::Cluster cluster({.platform = platform, .nodes = 3, .more_nodes = servers}, flows);
        StepsOptions options;
        options.strategy.kind = "server";
        options.strategy.synchrony = synchrony;
        options.strategy.servers = servers;
        options.strategy.batch = 48;
        options.strategy.threads = 4;
        const DrawnRows drawn(*subject.model, 48, 1);
        data::Batch none = drawn.batch();
        none.labels = none.dense = static_cast<const float*>(base::Hollow());
        std::vector<float> scores(48 * subject.model->scores());
        cluster.Run([&](fabric::sim::Cluster::Member& member) {
          const CostedModel costed(*subject.model, *costs, values,
                                   [&member](double seconds, int cores) { member.cores().Work(seconds, cores); });
          optimize::HollowMemory hollow;
          optimize::HeapMemory heap;
          const auto fabric = member.Connect();
          const auto made =
              MakeSteps(options, *fabric, member.clock(), costed, real ? static_cast<optimize::Memory&>(heap) : hollow,
                        real ? drawn.batch() : none, real ? std::span(scores) : base::HollowFloats(scores.size()));
          ASSERT_TRUE(made.ok()) << made.error().text;
        });
        return std::pair(cluster.now(), cluster.letters());
      };
      EXPECT_EQ(run(CostedModel::Values::kNone), run(CostedModel::Values::kReal));
    }
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

TEST(Subject, IsAnyNetworkThatMakesSense) {
  const Subject known = Subject::Of("lenet5").value(), same = Subject::OfNetwork("mine.toml", known.graph).value();
  EXPECT_EQ(same.parameter_bytes, known.parameter_bytes);
  EXPECT_EQ(same.model->config().classes, known.model->config().classes);
  const Subject text = Subject::Of("char-lstm").value();
  EXPECT_EQ(Subject::OfNetwork("text.toml", text.graph).value().model->scores(), text.model->scores());
  EXPECT_FALSE(Subject::OfNetwork("empty.toml", model::network::Graph({3})).ok());
}

TEST(ServedSimulation, OfSparseModelsTheRowsThatAreAskedForTravel) {
  const Subject subject = Subject::Of("url-like").value();
  for (const char* const synchrony : {"bsp", "ssp:2", "asp:1e-9", "bap"}) {
    SCOPED_TRACE(synchrony);
    Scenario scenario = Served(4, 2, synchrony);
    scenario.strategy.batch = 64;
    const auto costs = subject.CostsOn(scenario.platform).value();
    fabric::sim::StarFlows flows(scenario.platform);
    const auto outcome = Simulate(scenario, *subject.model, *costs, flows);
    ASSERT_TRUE(outcome.ok()) << outcome.error().text;
    // Of 16 rows with about 95 entries each: a number to ask by, and a float to push.
    EXPECT_GT(outcome.value().bytes_per_update, 16 * 50 * 8.0);
    EXPECT_LT(outcome.value().bytes_per_update, 16 * 95 * 12.0);  // numbers twice
    EXPECT_GT(outcome.value().times.compute, 0);
    const bool ahead = std::string_view(synchrony) == "asp:1e-9" || std::string_view(synchrony) == "ssp:2";
    EXPECT_EQ(outcome.value().times.apply > 0, ahead);  // who reads ahead learns alone
  }
}

}  // namespace
}  // namespace freshet::simulate
