// Workers of a parameter server: what they make is what one worker makes, or all-reduce, as far as the synchrony promises.

#include <gtest/gtest.h>

#include <thread>

#include "strategy/server/synchrony.h"
#include "strategy/worlds_testing.h"

namespace freshet::strategy {
namespace {

StrategyOptions By(const std::string& synchrony, int servers = 0) {
  StrategyOptions options;
  options.kind = "server";
  options.synchrony = synchrony;
  options.servers = servers;
  options.batch = 24;
  return options;
}

class ServerOf : public testing::TestWithParam<std::string> {};

TEST_P(ServerOf, BulkWorkersAreOneWorkerOfTheWholeBatch) {
  const Task task = MakeTask(GetParam(), 400, 3);
  for (const int members : {1, 2, 3, 4})
    for (const int servers : {0, 1, 2}) {
      if (servers >= members) continue;
      SCOPED_TRACE(Str(members, " members, ", servers, " servers"));
      StrategyOptions all;
      all.batch = 24;
      const Trained reduced = Train(task, members - servers, all, 1);
      const Trained served = Train(task, members, By("bsp", servers), 1);
      for (const auto& weights : served.weights) EXPECT_EQ(weights, served.weights[0]);
      EXPECT_LT(Distance(reduced.weights[0], served.weights[0]), 1e-6);
      const Trained many = Train(task, members - servers, all, 30), more = Train(task, members, By("bsp", servers), 30);
      EXPECT_LT(Distance(many.weights[0], more.weights[0]), 1e-3);
      EXPECT_NEAR(many.loss, more.loss, 1e-3 * std::abs(many.loss) + 1e-6);
      if (members - servers == 2) EXPECT_EQ(many.weights[0], more.weights[0]);  // two gradients have one sum
    }
}

TEST_P(ServerOf, TheSameBulkRunTwiceGivesTheSameBytes) {
  const Task task = MakeTask(GetParam(), 400, 4);
  const Trained once = Train(task, 3, By("bsp"), 25), twice = Train(task, 3, By("bsp"), 25);
  EXPECT_EQ(once.weights, twice.weights);
}

TEST_P(ServerOf, WhatIsStaleByNothingIsBulk) {
  const Task task = MakeTask(GetParam(), 400, 5);
  EXPECT_EQ(Train(task, 3, By("ssp:0"), 25).weights, Train(task, 3, By("bsp"), 25).weights);
}

TEST_P(ServerOf, EverySynchronyLearns) {
  const Task task = MakeTask(GetParam(), 600, 6);
  StrategyOptions all;
  all.batch = 24;
  const Trained reduced = Train(task, 3, all, 120);
  for (const char* const synchrony : {"ssp:1", "ssp:4", "asp:0.01", "bap"})
    for (const int servers : {0, 1}) {
      SCOPED_TRACE(Str(synchrony, " ", servers));
      const Trained served = Train(task, 3 + servers, By(synchrony, servers), 120);
      for (const auto& weights : served.weights) EXPECT_EQ(weights, served.weights[0]);
      EXPECT_LT(served.loss, 1.1 * reduced.loss);
    }
}

TEST(Server, OneMemberIsItsOwnServer) {
  const Task task = MakeTask("linear", 400, 7);
  StrategyOptions all;
  all.batch = 24;
  const Trained alone = Train(task, 1, all, 60);
  for (const char* const synchrony : {"bsp", "ssp:2", "asp:0", "bap"})
    EXPECT_LT(Train(task, 1, By(synchrony), 60).loss, 1.001 * alone.loss) << synchrony;
}

TEST(Server, OneMemberAloneIsNoServerWithoutAWorker) {
  const Task task = MakeTask("linear", 40, 1);
  fabric::RunMembers(1, [&](fabric::Fabric& fabric) {
    TestLearner learner(task);
    fabric::Collectives collectives(fabric);
    const auto made = Strategy::Make(By("bsp", 1), learner.World(collectives));
    ASSERT_FALSE(made.ok());
    EXPECT_NE(made.error().text.find("leave no worker"), std::string::npos) << made.error().text;
  });
}

INSTANTIATE_TEST_SUITE_P(Tasks, ServerOf,
                         testing::Values("linear", "table", "fm", "factorization", "kmeans", "perceptron",
                                         "convolution"));

}  // namespace
}  // namespace freshet::strategy
