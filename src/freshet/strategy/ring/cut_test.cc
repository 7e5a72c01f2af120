#include "strategy/ring/cut.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "base/str.h"
#include "model/network/graphs_testing.h"
#include "model/network/layer_costs.h"
#include "model/network/zoo.h"
#include "strategy/ring/plan.h"

namespace freshet::strategy::ring {
namespace {

using model::network::Graph;

// The cheapest that the dearest of so many stages can be, of all ways to cut these costs.
double BestDearest(const std::vector<double>& costs, std::size_t first, int stages) {
  if (stages == 1) {
    double sum = 0;
    for (std::size_t k = first; k < costs.size(); ++k) sum += costs[k];
    return sum;
  }
  double best = std::numeric_limits<double>::infinity(), sum = 0;
  for (std::size_t k = first; k + static_cast<std::size_t>(stages) <= costs.size(); ++k) {
    sum += costs[k];
    best = std::min(best, std::max(sum, BestDearest(costs, k + 1, stages - 1)));
  }
  return best;
}

TEST(Cut, NoStageIsMuchDearerThanItMustBeAndAllLayersLieInOne) {
  int tried = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    const Graph graph = model::network::RandomGraph(seed).graph();
    const auto facts = model::network::Infer(graph).value();
    const auto all = model::network::TrainingCosts(graph, facts, 16, 4);
    const auto used = model::network::Used(graph);
    std::vector<double> costs;
    for (std::size_t layer = 1; layer < all.size(); ++layer)
      if (used[layer]) costs.push_back(all[layer]);
    for (int stages = 1; stages <= 5; ++stages) {
      const auto cut = CutNetwork(graph, facts, model::network::OneDnn(), {stages, 1, 16, 4});
      ASSERT_EQ(cut.ok(), costs.size() >= static_cast<std::size_t>(stages));
      if (!cut.ok()) continue;
      int next = 0;
      double dearest = 0;
      for (const StageCut& stage : cut.value()) {
        EXPECT_EQ(stage.first, next);
        EXPECT_LT(stage.first, stage.last);
        next = stage.last;
        dearest = std::max(dearest, stage.cost);
      }
      EXPECT_EQ(next, static_cast<int>(graph.layers.size()));
      EXPECT_LE(dearest, 1.051 * BestDearest(costs, 0, stages));
      ++tried;
    }
  }
  EXPECT_GT(tried, 200);
}

TEST(Cut, MembersOfSeveralStagesShareTheCostThoughOneLayerIsDear) {
  const Graph graph = model::network::MakeZoo("googlenet", {3, 224, 224}, 1000).value();
  const auto facts = model::network::Infer(graph).value();
  const auto cut = CutNetwork(graph, facts, model::network::OneDnn(), {4, 2, 64, 16}).value();
  std::vector<double> members(4, 0);
  double all = 0;
  for (std::size_t s = 0; s < cut.size(); ++s) members[s % 4] += cut[s].cost, all += cut[s].cost;
  for (const double cost : members) EXPECT_LT(cost, 0.3 * all);
}

// What a stage reads, of layers before it, enters it; what only passes by enters all in between.
TEST(Cut, WhatIsReadLaterEntersEveryStageInBetween) {
  Graph graph({6});
  const int first = graph.Dense(0, 8, "first");
  int at = first;
  for (int layer = 0; layer < 4; ++layer) at = graph.Dense(at, 8, Str("layer", layer));
  graph.AddHead(graph.Dense(graph.Concat({at, first, 0}), 3, "scores"));
  const auto facts = model::network::Infer(graph).value();
  const auto cut = CutNetwork(graph, facts, model::network::OneDnn(), {3, 1, 16, 4}).value();
  EXPECT_TRUE(cut[0].enters.empty());
  for (std::size_t stage = 1; stage < cut.size(); ++stage) {
    ASSERT_EQ(cut[stage].enters.size(), 2u);  // the rows themselves are with all
    EXPECT_EQ(cut[stage].enters[0].layer, first);
    EXPECT_EQ(cut[stage].enters[1].layer, cut[stage].first - 1);
    EXPECT_TRUE(cut[stage].enters[0].learns);
  }
}

TEST(Cut, WhatDoesNotLearnNeedsNoGradientBack) {
  Graph graph({2, 6, 6});
  const int pooled = graph.MaxPool(0, 2, 2, 0, false, "pool");
  graph.AddHead(graph.Dense(graph.Relu(graph.Convolution(pooled, 3, 3, 1, 1, "conv")), 3, "scores"));
  const auto facts = model::network::Infer(graph).value();
  const auto cut = CutNetwork(graph, facts, model::network::OneDnn(), {4, 1, 16, 4}).value();
  ASSERT_EQ(cut[1].enters.size(), 1u);
  EXPECT_EQ(cut[1].enters[0].layer, pooled);
  EXPECT_FALSE(cut[1].enters[0].learns);
  EXPECT_TRUE(cut[2].enters[0].learns);
}

TEST(Cut, AnActivationStaysWithItsLayerWhereThatCostsNothing) {
  const Graph graph = model::network::MakeZoo("alexnet", {3, 227, 227}, 1000).value();
  const auto facts = model::network::Infer(graph).value();
  for (const int members : {2, 3, 4}) {
    const auto cut = CutNetwork(graph, facts, model::network::OneDnn(), {members, 1, 64, 8}).value();
    for (const StageCut& stage : cut)
      EXPECT_NE(graph.layers[static_cast<std::size_t>(stage.first)].op, model::network::Op::kRelu);
  }
}

TEST(Plan, MicroBatchesAreAFewForEachMemberAndNotTooSmall) {
  EXPECT_EQ(UsualMicros(256, 4), 16u);
  EXPECT_EQ(UsualMicros(32, 4), 8u);
  EXPECT_EQ(UsualMicros(32, 3), 6u);  // whole groups of three
  EXPECT_EQ(UsualMicros(8, 4), 2u);
  EXPECT_EQ(UsualMicros(1, 1), 1u);
}

}  // namespace
}  // namespace freshet::strategy::ring
