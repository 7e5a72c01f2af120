// Workers that only gossip: whoever is slow, all learn from all, and what they have together is neither lost nor doubled.

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "strategy/worlds_testing.h"

namespace freshet::strategy {
namespace {

struct How {
  std::string gossip, neighbours;
};

class GossipTest : public testing::TestWithParam<How> {
 protected:
  StrategyOptions Options() const {
    StrategyOptions options;
    options.kind = "gossip";
    options.gossip = GetParam().gossip;
    options.neighbours = GetParam().neighbours;
    options.batch = 32;
    options.every = 2;
    return options;
  }
};

void Expect(const Result<void>& done) { EXPECT_TRUE(done.ok()) << done.error().text; }

double LossOf(const Task& task, const std::vector<float>& weights) {
  TestLearner learner(task);
  std::size_t at = 0;
  for (std::size_t b = 0; b < learner.parameters->blocks(); ++b)
    for (float& value : learner.parameters->Values(b)) value = weights[at++];
  const data::Batch all = task.rows.batch();
  model::Workspace workspace;
  std::vector<float> scores(all.rows * learner.model->scores());
  learner.model->Predict(*learner.parameters, all, workspace, scores);
  return learner.model->LossOf(*learner.parameters, all, workspace, scores) / static_cast<double>(all.rows);
}

TEST_P(GossipTest, LearnsAboutAsWellAsAveragingAndAllEndWithTheSame) {
  for (const char* const name : {"linear", "table", "fm", "factorization", "perceptron"}) {
    SCOPED_TRACE(name);
    Task task = MakeTask(name, 600, 7);
    StrategyOptions average = Options();
    average.kind = "average";
    const Trained means = Train(task, 4, average, 120);
    task.computing = [] { std::this_thread::sleep_for(std::chrono::microseconds(200)); };  // or each would run alone
    const Trained gossip = Train(task, 4, Options(), 120);
    for (const auto& weights : gossip.weights) EXPECT_EQ(weights, gossip.weights[0]);
    const double wanted = LossOf(task, means.weights[0]), got = LossOf(task, gossip.weights[0]);
    EXPECT_LT(got, 1.08 * wanted + 0.02);
  }
}

// Nobody learns anything (a rate of next to nothing): then the mean of all stays what it was in the beginning, whoever writes to
// whom and however often, but for walks, which end near it.
TEST_P(GossipTest, WhatAllHaveTogetherIsNeitherLostNorDoubled) {
  Task task = MakeTask("table", 200, 3);
  task.optimizer.schedule.rate = 1e-30;
  constexpr int kWorkers = 5;
  std::vector<std::vector<float>> ends(kWorkers);
  std::vector<double> apart(kWorkers, 0);
  fabric::RunMembers(kWorkers, [&](fabric::Fabric& fabric) {
    TestLearner learner(task);
    fabric::Collectives collectives(fabric, {});
    const auto strategy = Strategy::Make(Options(), learner.World(collectives)).value();
    const data::Batch all = task.rows.batch();
    for (float& value : learner.parameters->Values(0)) value = static_cast<float>(fabric.rank());
    std::vector<float> scores;
    for (int step = 0; step < 40 + 10 * fabric.rank(); ++step) {  // each as many as it can
      const data::Batch piece = all.Slice(0, strategy->piece());
      const data::Batch mine = strategy->Share(piece);
      scores.resize(mine.rows * learner.model->scores());
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      const auto made = strategy->Step(piece, mine, scores);
      ASSERT_TRUE(made.ok()) << made.error().text;
    }
    const auto ended = strategy->EndEpoch();
    ASSERT_TRUE(ended.ok()) << ended.error().text;
    ends[static_cast<std::size_t>(fabric.rank())] = learner.Weights();
    apart[static_cast<std::size_t>(fabric.rank())] = strategy->times().apart;
  });
  for (const auto& weights : ends) {
    EXPECT_EQ(weights, ends[0]);
    EXPECT_NEAR(weights[0], 2, GetParam().gossip == "walk" ? 1.5 : 1e-3);
  }
  // They began 0.71 apart, in the mean. How much they have talked since depends on when each of them ran.
  for (const double one : apart) EXPECT_LT(one, 0.72);
}

TEST_P(GossipTest, StopsWhenAnybodyAsksAndSavesWhenTheFirstDoes) {
  const Task task = MakeTask("linear", 400, 5);
  fabric::RunMembers(3, [&](fabric::Fabric& fabric) {
    TestLearner learner(task);
    fabric::Collectives collectives(fabric, {});
    const auto strategy = Strategy::Make(Options(), learner.World(collectives)).value();
    const data::Batch all = task.rows.batch();
    std::vector<float> scores;
    int saved = 0, steps = 0;
    for (; steps < 100'000 && !strategy->stop_agreed(); ++steps) {
      const data::Batch piece = all.Slice(0, strategy->piece());
      const data::Batch mine = strategy->Share(piece);
      scores.resize(mine.rows * learner.model->scores());
      strategy->Ask(fabric.rank() == 2 && saved == 2, fabric.rank() == 0 && saved < 2);
      const auto made = strategy->Step(piece, mine, scores);
      ASSERT_TRUE(made.ok()) << made.error().text;
      if (!strategy->save_agreed()) continue;
      ++saved;
      Expect(strategy->Settle());
      const auto sum = strategy->Sum({1});
      ASSERT_TRUE(sum.ok()) << sum.error().text;
      EXPECT_EQ(sum.value()[0], 3);
      strategy->Forget();
    }
    EXPECT_TRUE(strategy->stop_agreed());
    EXPECT_EQ(saved, 2);
    Expect(strategy->Settle());
  });
}

INSTANTIATE_TEST_SUITE_P(Strategy, GossipTest,
                         testing::Values(How{"pairs", "random"}, How{"pairs", "ring"}, How{"push-sum", "exponential"},
                                         How{"push-sum", "ring"}, How{"walk", "random"}),
                         [](const auto& one) {
                           std::string name = one.param.gossip + "_" + one.param.neighbours;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace freshet::strategy
