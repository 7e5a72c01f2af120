// Distributed equals serial: whatever the model, the strategy and the topology.

#include <gtest/gtest.h>

#include "base/option.h"
#include "strategy/synchronous.h"
#include "strategy/worlds_testing.h"

namespace freshet::strategy {
namespace {

const std::vector<std::string> kTasks = {"linear", "table",      "factorization", "fm",
                                         "kmeans", "perceptron", "convolution"};
constexpr std::size_t kSteps = 100;

StrategyOptions Options(const std::string& kind, std::uint64_t batch = 36) {
  StrategyOptions options;
  options.kind = kind;
  options.batch = batch;
  options.every = 1;
  return options;
}

class EveryTask : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Tasks, EveryTask, testing::ValuesIn(kTasks), [](const auto& p) { return p.param; });

TEST_P(EveryTask, WorkersOfAShareEachAreOneWorkerOfTheWholeBatch) {
  const Task task = MakeTask(GetParam(), 4000, 1);
  const auto alone = Train(task, 1, Options("allreduce"), kSteps);
  for (const int workers : {2, 3, 4, 9}) {
    SCOPED_TRACE(Str(workers, " workers"));
    const auto together = Train(task, workers, Options("allreduce"), kSteps);
    EXPECT_LE(Distance(alone.weights[0], together.weights[0]), 1e-6 * kSteps);  // roundings add up, step by step
    EXPECT_NEAR(alone.loss, together.loss, 1e-4 * alone.loss);
    for (const auto& weights : together.weights) EXPECT_EQ(weights, together.weights[0]);  // the same bytes everywhere
  }
}

TEST_P(EveryTask, TheSameRunTwiceGivesTheSameBytes) {
  const Task task = MakeTask(GetParam(), 2000, 2);
  for (const std::string& kind : Synchronous::Kinds()) {
    SCOPED_TRACE(kind);
    StrategyOptions options = Options(kind, 24);
    options.every = 3;
    const auto once = Train(task, 4, options, 20), again = Train(task, 4, options, 20);
    EXPECT_EQ(once.weights, again.weights);
    for (const auto& weights : once.weights) EXPECT_EQ(weights, once.weights[0]);
  }
}

TEST_P(EveryTask, ExactSumsMakeTheSameBytesWhateverTheNumberOfWorkers) {
  Task task = MakeTask(GetParam(), 2000, 6);
  task.optimizer.kind = "adagrad";
  StrategyOptions options = Options("allreduce", 37);  // blocks of two rows and of three
  options.exact = true;
  const auto alone = Train(task, 1, options, 30);
  EXPECT_LE(Distance(alone.weights[0], Train(task, 1, Options("allreduce", 37), 30).weights[0]), 1e-4);
  for (const int workers : {2, 3, 5, 8, 16}) {
    SCOPED_TRACE(Str(workers, " workers"));
    const auto together = Train(task, workers, options, 30);
    for (const auto& weights : together.weights) EXPECT_EQ(weights, alone.weights[0]);
  }
}

TEST(Exact, SaysWhatItDoesNotGoWith) {
  const Task task = MakeTask("linear", 100, 7);
  const auto refused = [&](const std::function<void(StrategyOptions&)>& change) {
    StrategyOptions options = Options("allreduce");
    options.exact = true;
    change(options);
    std::string text;
    fabric::RunMembers(2, [&](fabric::Fabric& fabric) {
      TestLearner learner(task);
      fabric::Collectives collectives(fabric);
      const auto made = Strategy::Make(options, learner.World(collectives));
      if (fabric.rank() == 0) text = made.ok() ? "" : ShowOptions(made.error().text, "");
    });
    return text;
  };
  EXPECT_EQ(refused([](StrategyOptions&) {}), "");
  EXPECT_EQ(refused([](StrategyOptions& o) { o.codec = "int8"; }), "exact does not go with codec int8");
  EXPECT_EQ(refused([](StrategyOptions& o) { o.exact_blocks = 1; }),
            "exact-blocks: found 1, expected a power of two, at least as many as workers (2)");
  EXPECT_EQ(refused([](StrategyOptions& o) { o.exact_blocks = 6; }),
            "exact-blocks: found 6, expected a power of two, at least as many as workers (2)");
}

TEST_P(EveryTask, TopologiesAgree) {
  const Task task = MakeTask(GetParam(), 2000, 3);
  const auto central = Train(task, 3, Options("allreduce"), 30, fabric::Algorithm::kCentral);
  for (const std::string& name : fabric::AlgorithmNames()) {
    SCOPED_TRACE(name);
    const auto other = Train(task, 3, Options("allreduce"), 30, fabric::AlgorithmOf(name).value());
    EXPECT_LE(Distance(central.weights[0], other.weights[0]), 1e-5);
    for (const auto& weights : other.weights) EXPECT_EQ(weights, other.weights[0]);
  }
}

TEST_P(EveryTask, AveragingAfterEveryUpdateOfPlainSgdIsAllReduce) {
  if (GetParam() == "kmeans") GTEST_SKIP() << "k-means has a rule of its own, whose counts do not average";
  Task task = MakeTask(GetParam(), 4000, 4);
  for (const int workers : {2, 3}) {
    SCOPED_TRACE(Str(workers, " workers"));
    const auto summed = Train(task, workers, Options("allreduce"), kSteps);
    const auto averaged = Train(task, workers, Options("average"), kSteps);
    EXPECT_LE(Distance(summed.weights[0], averaged.weights[0]), 1e-6 * kSteps);
  }
}

TEST_P(EveryTask, OverlapBucketsAndAccumulationChangeNothingButRoundings) {
  const Task task = MakeTask(GetParam(), 2000, 5);
  const auto plain = Train(task, 2, Options("allreduce"), 30);
  StrategyOptions options = Options("allreduce");
  options.overlap = false;
  options.bucket_bytes = 64;
  EXPECT_LE(Distance(plain.weights[0], Train(task, 2, options, 30).weights[0]), 1e-5);
  options = Options("allreduce");
  options.accumulate = 3;
  EXPECT_LE(Distance(plain.weights[0], Train(task, 2, options, 30).weights[0]), 1e-5);
  options = Options("allreduce");
  options.factors = true;
  EXPECT_LE(Distance(plain.weights[0], Train(task, 2, options, 30).weights[0]), 1e-5);
}

TEST(Groups, OfAllWorkersAreAllReduceAndOfOneEachAreAveraging) {
  for (const std::string name : {"table", "perceptron"}) {
    SCOPED_TRACE(name);
    const Task task = MakeTask(name, 2000, 6);
    StrategyOptions groups = Options("groups");
    groups.group = 4;
    EXPECT_LE(Distance(Train(task, 4, Options("allreduce"), 30).weights[0], Train(task, 4, groups, 30).weights[0]),
              1e-5);
    groups.group = 1;
    groups.every = 4;
    StrategyOptions average = Options("average");
    average.every = 4;
    EXPECT_LE(Distance(Train(task, 4, average, 10).weights[0], Train(task, 4, groups, 10).weights[0]), 1e-5);
  }
}

// The rate is the schedule's whoever makes the updates: groups and warm starts hand theirs on to another strategy.
TEST(Groups, OfAllWorkersAndAWarmStartThatNeverEndsAreAllReduceUnderEverySchedule) {
  for (const std::string& kind : optimize::Schedule::Kinds()) {
    SCOPED_TRACE(kind);
    Task task = MakeTask("table", 2000, 8);
    task.optimizer.schedule.kind = kind;
    task.optimizer.schedule.decay = 0.1;
    const auto summed = Train(task, 4, Options("allreduce"), 30);
    StrategyOptions groups = Options("groups");
    groups.group = 4;
    EXPECT_LE(Distance(summed.weights[0], Train(task, 4, groups, 30).weights[0]), 1e-5);
    StrategyOptions average = Options("average");
    average.warm_start = 1000;
    EXPECT_LE(Distance(summed.weights[0], Train(task, 4, average, 30).weights[0]), 1e-5);
  }
}

TEST(Groups, MakeFewerUpdatesOfAShortPieceNotSmallerOnes) {
  const Task task = MakeTask("perceptron", 240, 7);
  StrategyOptions options;
  options.kind = "groups";
  options.batch = 24;
  options.group = 4;
  options.every = 3;
  fabric::RunMembers(4, [&](fabric::Fabric& fabric) {
    TestLearner learner(task);
    fabric::Collectives collectives(fabric);
    const auto strategy = Strategy::Make(options, learner.World(collectives)).value();
    std::vector<float> scores(1000);
    for (const std::size_t rows : {72, 24, 30}) {  // 3, 1 and 2 updates
      const data::Batch piece = task.rows.batch().Slice(0, rows), mine = strategy->Share(piece);
      ASSERT_TRUE(strategy->Step(piece, mine, std::span(scores).first(mine.rows * learner.model->scores())).ok());
    }
    EXPECT_EQ(learner.optimizer->step(), 6u);
  });
}

TEST(AllReduce, WithAdamAndMomentumIsTheSameToo) {
  for (const std::string& kind : optimize::Optimizer::Kinds())
    for (const std::string name : {"linear", "fm"}) {
      SCOPED_TRACE(Str(kind, " ", name));
      Task task = MakeTask(name, 3000, 7);
      task.optimizer.kind = kind;
      const auto alone = Train(task, 1, Options("allreduce"), 50), together = Train(task, 3, Options("allreduce"), 50);
      // Divisions by the size of gradients magnify the roundings of those that nearly cancel, of factors above all.
      EXPECT_LE(Distance(alone.weights[0], together.weights[0]), name == "fm" ? 1e-3 : 1e-4);
    }
}

// Workers who read rows of their own share what they see: the whole rows of a piece, dealt out, are the same update.
TEST(AllReduce, OfRowsOfTheirOwnIsThatOfAllRowsWhateverIsLearnedByLooking) {
  for (const std::string name : {"linear", "table", "factorization", "kmeans"}) {
    SCOPED_TRACE(name);
    Task task = MakeTask(name, 3000, 8);
    if (name == "linear" || name == "table") task.optimizer.kind = "adaptive";
    const auto alone = Train(task, 1, Options("allreduce"), 40);
    std::vector<std::vector<float>> weights(3);
    fabric::RunMembers(3, [&](fabric::Fabric& fabric) {
      TestLearner learner(task);
      fabric::Collectives collectives(fabric);
      StrategyOptions options = Options("allreduce");
      options.whole = false;
      const auto strategy = Strategy::Make(options, learner.World(collectives)).value();
      const auto rank = static_cast<std::size_t>(fabric.rank());
      std::vector<float> scores(12 * learner.model->scores());
      for (std::size_t step = 0; step < 40; ++step) {
        const std::size_t begin = step * 36 + rank * 12;  // of the pieces that one worker takes
        const data::Batch mine = task.rows.batch().Slice(begin, begin + 12);
        strategy->SetProgress(static_cast<double>(step) / 40);
        ASSERT_TRUE(strategy->Step(mine, mine, scores).ok());
      }
      weights[rank] = learner.Weights();
    });
    EXPECT_LE(Distance(alone.weights[0], weights[0]), 1e-4);
    for (const auto& one : weights) EXPECT_EQ(one, weights[0]);
  }
}

}  // namespace
}  // namespace freshet::strategy
