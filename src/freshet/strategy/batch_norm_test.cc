// Batch norm over workers: its statistics are those of all rows of an update, whoever has them.

#include <gtest/gtest.h>

#include "strategy/worlds_testing.h"

namespace freshet::strategy {
namespace {

// Batch norm after a convolution, with the activation that is computed with it, and after a dense layer, without.
Task NormalisedTask(std::size_t rows, std::uint64_t seed) {
  using model::network::Op;
  model::network::Graph graph({2, 6, 6});
  int x = graph.Relu(graph.Plain(Op::kBatchNorm, graph.Convolution(0, 5, 3, 1, 1, "conv"), "first"));
  x = graph.MaxPool(x, 2, 2, 0, false, "pool");
  x = graph.Plain(Op::kBatchNorm, graph.Dense(x, 8, "hidden"), "second");
  graph.AddHead(graph.Dense(graph.Plain(Op::kTanh, x, "tanh"), 3, "scores"));
  return NetworkTask(graph, rows, seed);
}

StrategyOptions Options(std::uint64_t batch) {
  StrategyOptions options;
  options.batch = batch;
  options.bucket_bytes = 64;  // buckets travel between the sums
  options.every = 1;
  return options;
}

// Pieces of these sizes, over and over, by N workers; the weights of each.
std::vector<std::vector<float>> TrainPieces(const Task& task, int workers, const StrategyOptions& options,
                                            const std::vector<std::size_t>& sizes, std::size_t pieces) {
  std::vector<std::vector<float>> weights(static_cast<std::size_t>(workers));
  fabric::RunMembers(workers, [&](fabric::Fabric& fabric) {
    TestLearner learner(task);
    fabric::Collectives collectives(fabric);
    const auto strategy = Strategy::Make(options, learner.World(collectives)).value();
    std::vector<float> scores;
    for (std::size_t p = 0, at = 0; p < pieces; at += sizes[p % sizes.size()], ++p) {
      const std::size_t rows = sizes[p % sizes.size()], begin = at % (task.rows.size() - rows);
      const data::Batch piece = task.rows.batch().Slice(begin, begin + rows), mine = strategy->Share(piece);
      scores.resize(mine.rows * learner.model->scores());
      ASSERT_TRUE(strategy->Step(piece, mine, scores).ok());
    }
    ASSERT_TRUE(strategy->EndEpoch().ok());
    weights[static_cast<std::size_t>(fabric.rank())] = learner.Weights();
  });
  return weights;
}

TEST(BatchNorm, WorkersOfAShareEachAreOneWorkerOfTheWholeBatch) {
  const Task task = NormalisedTask(2000, 1);
  const std::vector<std::size_t> sizes = {36, 35, 36, 3};  // the last: less than a row for each of four
  const auto alone = TrainPieces(task, 1, Options(36), sizes, 60);
  for (const int workers : {2, 3, 4}) {
    SCOPED_TRACE(Str(workers, " workers"));
    const auto together = TrainPieces(task, workers, Options(36), sizes, 60);
    EXPECT_LE(Distance(alone[0], together[0]), 1e-4);  // roundings; local statistics are 0.1 away
    for (const auto& weights : together) EXPECT_EQ(weights, together[0]);
  }
}

TEST(BatchNorm, LocalStatisticsAreThoseOfAWorkersOwnRows) {
  const Task task = NormalisedTask(2000, 1);
  StrategyOptions options = Options(36);
  const auto alone = TrainPieces(task, 1, options, {36}, 60);
  options.batch_norm = "local";
  const auto local = TrainPieces(task, 4, options, {36}, 60);
  EXPECT_GE(Distance(alone[0], local[0]), 1e-2);
  for (const auto& weights : local) EXPECT_EQ(weights, local[0]);
}

TEST(BatchNorm, GroupsOfAllWorkersAreAllReduce) {
  const Task task = NormalisedTask(2000, 2);
  StrategyOptions options = Options(36);
  const auto summed = TrainPieces(task, 4, options, {36}, 20);
  options.kind = "groups";
  options.group = 4;
  EXPECT_LE(Distance(summed[0], TrainPieces(task, 4, options, {36}, 20)[0]), 1e-5);
}

TEST(BatchNorm, SharesAreComputedInAsManyPartsByAllThoughSomeHaveFewerRows) {
  const Task task = NormalisedTask(2000, 3);
  StrategyOptions options = Options(36);
  options.accumulate = 3;
  const auto parts = TrainPieces(task, 4, options, {36, 10, 2}, 12);
  for (const auto& weights : parts) EXPECT_EQ(weights, parts[0]);
}

TEST(BatchNorm, WorkersWithoutRowsOfTheirOwnTakePartInTheSumsOfTheOthers) {
  const Task task = NormalisedTask(300, 4);
  for (const std::string& kind : Strategy::Kinds()) {
    SCOPED_TRACE(kind);
    if (NeedsAllRows(kind)) continue;
    std::vector<std::vector<float>> weights(4);
    fabric::RunMembers(4, [&](fabric::Fabric& fabric) {
      const auto rank = static_cast<std::size_t>(fabric.rank());
      TestLearner learner(task);
      fabric::Collectives collectives(fabric);
      StrategyOptions options = Options(24);
      options.kind = kind;
      options.whole = false;
      options.every = 2;
      const auto strategy = Strategy::Make(options, learner.World(collectives)).value();
      const data::Batch mine = task.rows.batch().Slice(0, rank * 37);  // none for rank 0
      std::vector<float> scores;
      for (std::size_t begin = 0; begin < mine.rows; begin += strategy->piece()) {
        const data::Batch piece = mine.Slice(begin, std::min(begin + strategy->piece(), mine.rows));
        scores.resize(piece.rows * learner.model->scores());
        ASSERT_TRUE(strategy->Step(piece, piece, scores).ok());
      }
      ASSERT_TRUE(strategy->EndEpoch().ok());
      weights[rank] = learner.Weights();
    });
    for (const auto& one : weights) EXPECT_EQ(one, weights[0]);
    for (const float weight : weights[0]) ASSERT_TRUE(std::isfinite(weight));
  }
}

TEST(BatchNorm, AWorkerThatGivesUpEndsTheOthersWithItsReason) {
  const Task task = NormalisedTask(100, 5);
  fabric::RunMembers(3, [&](fabric::Fabric& fabric) {
    TestLearner learner(task);
    fabric::Collectives collectives(fabric);
    const auto strategy = Strategy::Make(Options(24), learner.World(collectives)).value();
    const data::Batch piece = task.rows.batch().Slice(0, 24), mine = strategy->Share(piece);
    std::vector<float> scores(mine.rows * learner.model->scores());
    ASSERT_TRUE(strategy->Step(piece, mine, scores).ok());
    if (fabric.rank() == 1) return fabric.Abort({Code::kBadInput, "a.csv:3: found x"});
    const auto ended = strategy->Step(piece, mine, scores);
    ASSERT_FALSE(ended.ok());
    EXPECT_NE(ended.error().text.find("a.csv:3"), std::string::npos) << ended.error().text;
  });
}

}  // namespace
}  // namespace freshet::strategy
