// Pipelines that do not run empty between updates are one worker whose gradients are of weights one update older.

#include "strategy/ring/no_flush.h"

#include <gtest/gtest.h>

#include "strategy/ring/ring_testing.h"

namespace freshet::strategy::ring {
namespace {

// One worker: the gradient of the weights before the last update changes those after it; after `drained` updates, of the
// last ones.
Made TrainLate(const Task& task, const StrategyOptions& options, const std::vector<std::size_t>& sizes,
               std::size_t steps, std::size_t drained) {
  Made run;
  TestLearner learner(task);
  optimize::Parameters earlier = learner.model->NewParameters(learner.memory).value();
  optimize::Gradient gradient = learner.model->NewGradient(learner.memory, {}).value();
  model::Workspace workspace;
  const data::Batch all = task.rows.batch();
  for (std::size_t step = 0, begin = 0; step < steps; ++step) {
    const std::size_t rows = sizes[step % sizes.size()];
    if (begin + rows > all.rows) begin = 0;
    const data::Batch piece = all.Slice(begin, begin + rows);
    begin += rows;
    const bool late = step % drained != 0;
    if (!late) earlier.CopyFrom(*learner.parameters);
    gradient.Clear();
    workspace.step = step;
    double loss = 0;
    const std::size_t micros = std::min<std::size_t>(options.micro, rows);
    for (std::size_t micro = 0; micro < micros; ++micro) {
      const data::Batch part = piece.Slice(rows * micro / micros, rows * (micro + 1) / micros);
      std::vector<float> scores(part.rows * learner.model->scores());
      loss += learner.model->LossAndGradient(earlier, part, workspace, gradient, scores);
      run.scores.insert(run.scores.end(), scores.begin(), scores.end());
    }
    run.losses.push_back(loss);
    earlier.CopyFrom(*learner.parameters);
    learner.optimizer->SetProgress(static_cast<double>(step) / static_cast<double>(steps));
    learner.model->Apply(*learner.parameters, gradient, static_cast<double>(rows), *learner.optimizer, workspace);
  }
  run.weights = learner.Weights();
  return run;
}

std::vector<float> ScoresOf(const std::vector<Made>& runs) {
  std::vector<float> scores;
  for (const Made& run : runs) scores.insert(scores.end(), run.scores.begin(), run.scores.end());
  return scores;
}

double LossOf(const std::vector<Made>& runs) {
  double sum = 0;
  for (const Made& run : runs)
    for (const double loss : run.losses) sum += loss;
  return sum;
}

class NoFlushOf : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Networks, NoFlushOf,
                         testing::Values("perceptron", "branches", "normalised", "sequence", "autoencoder"),
                         [](const auto& p) { return p.param; });

TEST_P(NoFlushOf, IsOneWorkerWhoseGradientsAreOneUpdateLate) {
  const Task task = RingTask(GetParam());
  for (const int members : {1, 2, 3, 5, 8})
    for (const std::uint64_t micro : {1, 4, 8}) {
      if (members > 3 && GetParam() == "sequence") continue;  // too few layers
      if (members > 4 && GetParam() == "perceptron") continue;
      if (members > 5 && GetParam() == "autoencoder") continue;
      SCOPED_TRACE(Str(members, " members, ", micro, " micro-batches"));
      const StrategyOptions options = RingOptions("stash", 24, micro);
      const std::vector<std::size_t> sizes = {24, 23, 3};
      for (const std::size_t steps : {1, 2, 3, 9}) {
        const Made late = TrainLate(task, options, sizes, steps, steps);
        const auto runs = TrainRing(task, members, options, sizes, steps);
        for (const Made& run : runs) {
          EXPECT_EQ(run.weights, runs[0].weights);
          EXPECT_EQ(run.state, runs[0].state);
        }
        EXPECT_LE(Distance(late.weights, runs[0].weights), steps < 4 ? 1e-5 : 1e-3) << steps << " steps";
        EXPECT_LE(Distance(late.scores, ScoresOf(runs)), steps < 4 ? 1e-4 : 1e-2) << steps << " steps";
        EXPECT_NEAR(LossOf(runs), LossOf({late}), 1e-3 * LossOf({late}));
      }
    }
}

TEST_P(NoFlushOf, GivesTheSameBytesTwiceAndInSimulatedTime) {
  const Task task = RingTask(GetParam());
  const auto once = TrainRing(task, 3, RingOptions("stash"), {24}, 6),
             again = TrainRing(task, 3, RingOptions("stash"), {24}, 6);
  EXPECT_EQ(once[0].weights, again[0].weights);
  EXPECT_EQ(once[0].weights, TrainRing(task, 3, RingOptions("stash"), {24}, 6, InSimulatedTime)[0].weights);
}

// Stated in docs/ring.md.
TEST_P(NoFlushOf, LearnsNearlyAsWell) {
  const Task task = RingTask(GetParam());
  const int members = GetParam() == "sequence" ? 2 : 3;
  const auto flushed = TrainRing(task, members, RingOptions("1f1b"), {24}, 120),
             late = TrainRing(task, members, RingOptions("stash"), {24}, 120);
  const auto last = [](const std::vector<Made>& runs) {
    double sum = 0;
    for (const Made& run : runs)
      for (std::size_t step = 80; step < 120; ++step) sum += run.losses[step];
    return sum;
  };
  RecordProperty(GetParam(), Str(last(late) / last(flushed)));
  EXPECT_LE(last(late), 1.1 * last(flushed));
}

TEST(NoFlush, CountsHowLateGradientsAre) {
  const Task task = RingTask("branches");
  OnThreads(3, [&](fabric::Fabric& fabric) {
    TestLearner learner(task);
    fabric::Collectives collectives(fabric);
    const auto strategy = Strategy::Make(RingOptions("stash"), learner.World(collectives)).value();
    Steps(task, learner, *strategy, {24}, 5);  // to the end of an epoch
    Steps(task, learner, *strategy, {24}, 5);
    Steps(task, learner, *strategy, {24}, 1);
    const auto stale = strategy->times().stale;
    EXPECT_EQ(stale[0], 2u);
    EXPECT_EQ(stale[1], 8u);
    EXPECT_EQ(stale[2], 0u);
  });
}

TEST(NoFlush, WhatAnybodyAsksIsAgreedOnByAllOneStepLater) {
  const Task task = RingTask("perceptron");
  for (int asks = 0; asks < 3; ++asks)
    OnThreads(3, [&](fabric::Fabric& fabric) {
      TestLearner learner(task);
      fabric::Collectives collectives(fabric);
      const auto strategy = Strategy::Make(RingOptions("stash"), learner.World(collectives)).value();
      const data::Batch piece = task.rows.batch().Slice(0, strategy->piece()), mine = strategy->Share(piece);
      std::vector<float> scores(mine.rows * learner.model->scores());
      for (int step = 0; step < 4; ++step) {
        strategy->Ask(fabric.rank() == asks && step == 2, fabric.rank() == asks && step == 1);
        ASSERT_TRUE(strategy->Step(piece, mine, scores).ok());
        EXPECT_EQ(strategy->stop_agreed(), step == 3);
        EXPECT_EQ(strategy->save_agreed(), step == 2);
      }
      // Nothing is under way any more: whoever stops here leaves nobody waiting.
    });
}

TEST(NoFlush, AMemberThatLeavesEndsTheOthers) {
  const Task task = RingTask("branches");
  OnThreads(3, [&](fabric::Fabric& fabric) {
    TestLearner learner(task);
    fabric::Collectives collectives(fabric);
    const auto strategy = Strategy::Make(RingOptions("stash"), learner.World(collectives)).value();
    const data::Batch piece = task.rows.batch().Slice(0, strategy->piece()), mine = strategy->Share(piece);
    std::vector<float> scores(mine.rows * learner.model->scores());
    const bool leaves = fabric.rank() == 1;
    for (int step = 0; step < (leaves ? 1 : 4); ++step)
      if (!strategy->Step(piece, mine, scores).ok()) return;
    if (!leaves) ADD_FAILURE() << "rank " << fabric.rank() << " goes on alone";
  });
}

TEST(NoFlush, DoesNotGoWithWhatNeedsAPause) {
  const Task task = RingTask("branches");
  OnThreads(2, [&](fabric::Fabric& fabric) {
    TestLearner learner(task);
    fabric::Collectives collectives(fabric);
    for (const bool recompute : {false, true}) {
      StrategyOptions options = RingOptions("stash");
      (recompute ? options.recompute : options.balance) = true;
      const auto made = Strategy::Make(options, learner.World(collectives));
      ASSERT_FALSE(made.ok());
      EXPECT_NE(made.error().text.find("stash"), std::string::npos) << made.error().text;
    }
  });
}

}  // namespace
}  // namespace freshet::strategy::ring
