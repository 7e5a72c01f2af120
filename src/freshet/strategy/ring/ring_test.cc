// What a ring does beside learning: it agrees on what is asked, ends with a member, shows rows, and refuses.

#include "strategy/ring/ring.h"

#include <gtest/gtest.h>

#include "strategy/ring/ring_testing.h"

namespace freshet::strategy::ring {
namespace {

// A body for each of three members, who all have a strategy.
void WithRing(const Task& task, const StrategyOptions& options,
              const std::function<void(fabric::Fabric& fabric, TestLearner& learner, Strategy& strategy)>& body) {
  OnThreads(3, [&](fabric::Fabric& fabric) {
    TestLearner learner(task);
    fabric::Collectives collectives(fabric);
    const auto strategy = Strategy::Make(options, learner.World(collectives)).value();
    body(fabric, learner, *strategy);
  });
}

Result<std::optional<double>> StepOf(const Task& task, const TestLearner& learner, Strategy& strategy) {
  const data::Batch piece = task.rows.batch().Slice(0, strategy.piece()), mine = strategy.Share(piece);
  std::vector<float> scores(mine.rows * learner.model->scores());
  return strategy.Step(piece, mine, scores);
}

TEST(Ring, WhatAnybodyAsksIsAgreedOnByAllWithTheSameStep) {
  const Task task = RingTask("perceptron");
  for (int asks = 0; asks < 3; ++asks)
    WithRing(task, RingOptions(), [&](fabric::Fabric& fabric, TestLearner& learner, Strategy& strategy) {
      for (int step = 0; step < 4; ++step) {
        strategy.Ask(fabric.rank() == asks && step == 2, fabric.rank() == asks && step == 1);
        ASSERT_TRUE(StepOf(task, learner, strategy).ok());
        EXPECT_EQ(strategy.stop_agreed(), step == 2);
        EXPECT_EQ(strategy.save_agreed(), step == 1);
      }
    });
}

TEST(Ring, AMemberThatGivesUpEndsTheOthersWithItsReason) {
  const Task task = RingTask("branches");
  for (int quits = 0; quits < 3; ++quits)
    WithRing(task, RingOptions(), [&](fabric::Fabric& fabric, TestLearner& learner, Strategy& strategy) {
      ASSERT_TRUE(StepOf(task, learner, strategy).ok());
      (void)strategy.Barrier();  // nobody gives up before all have made the step
      if (fabric.rank() == quits) return fabric.Abort({Code::kBadInput, "a.csv:3: found x"});
      const auto ended = StepOf(task, learner, strategy);
      ASSERT_FALSE(ended.ok());
      EXPECT_NE(ended.error().text.find("a.csv:3"), std::string::npos) << ended.error().text;
    });
}

TEST(Ring, LearnsFromRowsAsTheyAreShown) {
  const Task task = RingTask("autoencoder");  // whose answer is compared with them, too
  Task shown = RingTask("autoencoder", 0);
  const data::Batch all = task.rows.batch();
  for (std::size_t r = 0; r < all.rows; ++r) {
    std::vector<float> values(all.dense + r * all.width, all.dense + (r + 1) * all.width);
    for (float& value : values) value *= -0.5f;
    model::AddDense(shown.rows, all.labels[r], values);
  }
  const auto want = TrainRing(shown, 3, RingOptions(), {24}, 1);
  WithRing(task, RingOptions(), [&](fabric::Fabric& fabric, TestLearner& learner, Strategy& strategy) {
    std::vector<float> memory;
    strategy.SetShow([&](const data::Batch& rows) {
      memory.assign(rows.dense, rows.dense + rows.rows * rows.width);
      for (float& value : memory) value *= -0.5f;
      data::Batch batch = rows;
      batch.dense = memory.data();
      return batch;
    });
    ASSERT_TRUE(StepOf(task, learner, strategy).ok());
    ASSERT_TRUE(strategy.EndEpoch().ok());
    EXPECT_EQ(learner.Weights(), want[static_cast<std::size_t>(fabric.rank())].weights);
  });
}

TEST(Ring, SendsTensorsToNeighboursAndNoWeightsUntilAllSettle) {
  const Task task = RingTask("perceptron");  // hidden layers of 12: 24 rows each way, in a step
  WithRing(task, RingOptions(), [&](fabric::Fabric& fabric, TestLearner& learner, Strategy& strategy) {
    ASSERT_TRUE(StepOf(task, learner, strategy).ok());
    const StepTimes times = strategy.times();
    const std::uint64_t least = 24 * 12 * sizeof(float), tidings = 400;
    EXPECT_EQ(times.bytes_next >= least, fabric.rank() < 2);
    EXPECT_LE(times.bytes_next, least + tidings);
    EXPECT_EQ(times.bytes_back >= least, fabric.rank() > 0);
    EXPECT_LE(times.bytes_back, least + tidings);
    const auto weights = learner.Weights();
    ASSERT_TRUE(strategy.Settle().ok());
    EXPECT_NE(learner.Weights(), weights);
    EXPECT_EQ(strategy.times().bytes_next, times.bytes_next);
  });
}

}  // namespace
}  // namespace freshet::strategy::ring
