#include "simulate/plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fabric/sim/star_flows.h"
#include "simulate/subject.h"

namespace freshet::simulate {
namespace {

fabric::sim::Platform Star(int nodes, double gbit, double us) {
  fabric::sim::Platform platform;
  platform.nodes = nodes;
  platform.cores = 4;
  platform.core_gflops = 50;
  platform.link_gbit = gbit;
  platform.link_us = us;
  platform.efficiency = {"1=0.1", "32=0.6"};
  return platform;
}

std::vector<Candidate> Planned(const fabric::sim::Platform& platform, const Choices& choices, Search search,
                               const std::string& model) {
  const Subject subject = Subject::Of(model).value();
  const DescribedCosts costs = DescribedCosts::Make(subject.graph, platform).value();
  fabric::sim::StarFlows flows(platform);
  Scenario base;
  base.platform = platform;
  base.nodes = platform.nodes;
  base.steps = 1;
  base.strategy.batch = 128;
  base.strategy.every = 4;
  auto plan = Plan(base, choices, search, *subject.model, costs, flows, {});
  EXPECT_TRUE(plan.ok()) << plan.error().text;
  return plan.ok() ? std::move(plan).value() : std::vector<Candidate>();
}

TEST(Plan, InStagesComesNearTheBestOfAll) {
  Choices choices;
  choices.strategies = {"allreduce", "average"};
  choices.codecs = {"none", "fp16", "int8"};
  for (const auto& platform : {Star(8, 1, 50), Star(6, 100, 2), Star(3, 0.1, 500)})
    for (const char* const model : {"lenet5", "mlp"}) {
      SCOPED_TRACE(Str(model, " ", platform.link_gbit));
      const auto staged = Planned(platform, choices, Search::kStaged, model);
      const auto all = Planned(platform, choices, Search::kExhaustive, model);
      ASSERT_FALSE(staged.empty() || all.empty());
      EXPECT_LT(staged.size(), all.size());
      EXPECT_LE(staged[0].outcome.step_seconds, 1.1 * all[0].outcome.step_seconds)
          << staged[0].Name() << " " << all[0].Name();
      for (std::size_t i = 1; i < all.size(); ++i)
        EXPECT_GE(all[i - 1].outcome.rows_per_second, all[i].outcome.rows_per_second);
    }
}

TEST(Plan, ChoosesWhatThePlatformAsksFor) {
  Choices choices;
  choices.codecs = {"none", "int8"};
  choices.workers_per_node = {1};
  const auto slow = Planned(Star(4, 0.1, 50), choices, Search::kStaged, "lenet5");
  EXPECT_EQ(slow[0].scenario.strategy.codec, "int8");  // bytes are dear
  const auto fast = Planned(Star(4, 400, 1), choices, Search::kStaged, "lenet5");
  EXPECT_EQ(fast[0].scenario.strategy.codec, "none");  // encoding is
  EXPECT_NE(fast[0].scenario.collectives.algorithm, fabric::Algorithm::kCentral);
  EXPECT_NE(slow.back().Why(slow[0]).find("slower: "), std::string::npos) << slow.back().Why(slow[0]);
}

// AlexNet's dense layers have 58.6 million weights, and 128 rows of them a few million numbers; but each exchange takes
// its time.
TEST(Plan, CutsWideLayersWhereLessTravels) {
  Choices choices;
  choices.strategies = {"allreduce", "slices"};
  choices.workers_per_node = {1};
  const auto best = [&](const std::string& model, const fabric::sim::Platform& platform) {
    return Planned(platform, choices, Search::kStaged, model)[0].scenario.strategy.kind;
  };
  EXPECT_EQ(best("alexnet", Star(4, 1, 50)), "slices");
  EXPECT_EQ(best("cifar-quick", Star(4, 400, 2000)), "allreduce");
  choices.strategies = {"slices"};
  EXPECT_EQ(best("lenet5", Star(4, 1, 50)), "slices");
}

TEST(Plan, LeavesOutWhatCannotBe) {
  Choices choices;
  choices.strategies = {"ring", "allreduce"};
  choices.topologies = {fabric::Algorithm::kRing};
  choices.workers_per_node = {1, 2};  // of which eight in all cannot cut seven layers
  const auto plan = Planned(Star(4, 1, 50), choices, Search::kStaged, "lenet5");
  const auto rings = [](const Candidate& each) { return each.scenario.strategy.kind == "ring"; };
  EXPECT_GT(std::count_if(plan.begin(), plan.end(), rings), 0);
  for (const Candidate& each : plan) EXPECT_TRUE(!rings(each) || each.scenario.workers_per_node == 1);
  EXPECT_LT(std::count_if(plan.begin(), plan.end(), rings), std::ssize(plan));
}

TEST(Plan, RefusesWhatCannotBePlaced) {
  const Subject subject = Subject::Of("lenet5").value();
  Scenario base;
  base.platform = Star(4, 1, 1);
  base.nodes = 4;
  base.strategy.batch = 3;
  const DescribedCosts costs = DescribedCosts::Make(subject.graph, base.platform).value();
  fabric::sim::StarFlows flows(base.platform);
  const auto plan = Plan(base, {}, Search::kStaged, *subject.model, costs, flows, {});
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().text, "batch 3 on 4 nodes: there is not a row for each worker, however they are placed");
}

}  // namespace
}  // namespace freshet::simulate
