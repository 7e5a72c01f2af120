// Members of a parameter server that have no memory for the whole model make the same one.

#include <gtest/gtest.h>

#include "base/option.h"
#include "strategy/worlds_testing.h"

namespace freshet::strategy {
namespace {

StrategyOptions By(const std::string& synchrony, int servers, bool large) {
  StrategyOptions options;
  options.kind = "server";
  options.synchrony = synchrony;
  options.servers = servers;
  options.batch = 24;
  options.large = large;
  return options;
}

class LargeModel : public testing::TestWithParam<std::string> {};

TEST_P(LargeModel, BulkHasTheSameBits) {
  for (const std::string rule : {"sgd", "adagrad", "adaptive"}) {
    Task task = MakeTask(GetParam(), 400, 3);
    task.optimizer.kind = rule;
    for (const int members : {1, 2, 3, 4})
      for (const int servers : {0, 1, 2}) {
        if (servers >= members) continue;
        SCOPED_TRACE(Str(rule, ", ", members, " members, ", servers, " servers"));
        const Trained all = Train(task, members, By("bsp", servers, false), 30);
        const Trained large = Train(task, members, By("bsp", servers, true), 30);
        EXPECT_EQ(all.weights, large.weights);
        EXPECT_EQ(all.loss, large.loss);
      }
  }
}

TEST_P(LargeModel, EverySynchronyLearns) {
  const Task task = MakeTask(GetParam(), 600, 6);
  StrategyOptions all;
  all.batch = 24;
  const Trained reduced = Train(task, 3, all, 120);
  for (const char* const synchrony : {"ssp:1", "ssp:4", "asp:0.01", "bap"})
    for (const int servers : {0, 1}) {
      SCOPED_TRACE(Str(synchrony, " ", servers));
      StrategyOptions options = By(synchrony, servers, true);
      const Trained served = Train(task, 3 + servers, options, 120);
      for (const auto& weights : served.weights) EXPECT_EQ(weights, served.weights[0]);
      EXPECT_LT(served.loss, 1.1 * reduced.loss);
      if (std::string_view(synchrony) == "ssp:1") continue;
      options.push_every = 3;
      options.fetch_every = 2;
      EXPECT_LT(Train(task, 3 + servers, options, 120).loss, 1.15 * reduced.loss);
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, LargeModel, testing::Values("linear", "fm", "factorization"),
                         [](const auto& each) { return each.param; });

// More rows than a worker keeps near: it forgets them again and again.
TEST(LargeModel, WhatWasForgottenIsReadAgain) {
  Task task = MakeTask("linear", 1, 3);
  base::Random random(7, "many");
  for (int r = 0; r < 2000; ++r) {
    std::vector<std::pair<std::uint32_t, float>> entries;
    for (int e = 0; e < 120; ++e) entries.emplace_back(static_cast<std::uint32_t>(random.Below(1'000'000)), 0.1f);
    for (std::uint32_t e = 0; e < 5; ++e) entries.emplace_back(e, 0.5f);
    model::AddSparse(task.rows, static_cast<float>(r % 2), entries);
  }
  for (const std::string synchrony : {"bsp", "ssp:0"})
    EXPECT_EQ(Train(task, 2, By("bsp", 0, false), 80).weights, Train(task, 2, By(synchrony, 0, true), 80).weights);
}

TEST(LargeModel, IsRefusedWhereAllParametersAreNeeded) {
  for (const std::string name : {"perceptron", "kmeans", "table"}) {
    const Task task = MakeTask(name, 50, 3);
    fabric::RunMembers(2, [&](fabric::Fabric& fabric) {
      TestLearner learner(task);
      fabric::Collectives collectives(fabric, {});
      const auto made = Strategy::Make(By("bsp", 0, true), learner.World(collectives));
      ASSERT_FALSE(made.ok());
      EXPECT_NE(made.error().text.find("large-model"), std::string::npos) << made.error().text;
    });
  }
}

}  // namespace
}  // namespace freshet::strategy
