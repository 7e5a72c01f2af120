#include <gtest/gtest.h>

#include "base/files.h"
#include "base/option.h"
#include "base/scratch_testing.h"
#include "strategy/worlds_testing.h"

namespace freshet::strategy {
namespace {

StrategyOptions Options(const std::string& kind) {
  StrategyOptions options;
  options.kind = kind;
  options.batch = 24;
  return options;
}

TEST(Strategy, RefusesWhatMakesNoSense) {
  const Task task = MakeTask("perceptron", 100, 1);
  fabric::RunMembers(2, [&](fabric::Fabric& fabric) {
    TestLearner learner(task);
    fabric::Collectives collectives(fabric);
    const auto refused = [&](StrategyOptions options, std::string_view piece) {
      const auto made = Strategy::Make(options, learner.World(collectives));
      ASSERT_FALSE(made.ok());
      EXPECT_NE(made.error().text.find(piece), std::string::npos) << made.error().text;
    };
    StrategyOptions options = Options("allreduce");
    options.batch = 1;
    refused(options, Str(Option("batch"), " 1"));
    refused(Options("magic"), "allreduce, average, groups, gossip");
    options = Options("gossip");
    options.codec = "fp16";
    refused(options, "it sends parameters");
    options = Options("gossip");
    options.gossip = "shout";
    refused(options, "pairs, push-sum or walk");
    options = Options("server");
    options.synchrony = "ssp:x";
    refused(options, "ssp:CLOCKS");
    options = Options("server");
    options.servers = 2;
    refused(options, "leave no worker");
    options = Options("server");
    options.servers = -1;
    refused(options, "leave no worker");
    options = Options("server");
    options.push_every = 2;
    refused(options, "use ssp, asp or bap");
    options = Options("server");
    options.synchrony = "ssp:2";
    options.fetch_every = 4;
    refused(options, "give at most 3");
    options = Options("groups");
    options.group = 3;
    refused(options, "does not divide 2");
    options = Options("average");
    options.codec = "fp16";
    refused(options, "gradients");
    options = Options("allreduce");
    options.codec = "zip";
    refused(options, "zip");
  });
}

TEST(Strategy, WorkersWithRowsOfTheirOwnEndTogetherThoughTheyHaveUnequallyMany) {
  for (const std::string& kind : Strategy::Kinds())
    for (const std::string name : {"linear", "table", "perceptron", "kmeans", "factorization"}) {
      SCOPED_TRACE(Str(kind, " ", name));
      if (NeedsAllRows(kind)) continue;
      if ((kind == "gossip" || kind == "server") && name == "kmeans")
        continue;  // it needs clusters that are the same for all
      const Task task = MakeTask(name, 300, 2);
      std::vector<std::vector<float>> weights(4);
      std::vector<std::uint64_t> rows(4);
      fabric::RunMembers(4, [&](fabric::Fabric& fabric) {
        const auto rank = static_cast<std::size_t>(fabric.rank());
        TestLearner learner(task);
        fabric::Collectives collectives(fabric);
        StrategyOptions options = Options(kind);
        options.whole = false;
        options.every = 2;
        const auto strategy = Strategy::Make(options, learner.World(collectives)).value();
        const data::Batch mine = task.rows.batch().Slice(0, rank * 37);  // none for rank 0
        std::vector<float> scores;
        for (std::size_t begin = 0; begin < mine.rows; begin += strategy->piece()) {
          const data::Batch piece = mine.Slice(begin, std::min(begin + strategy->piece(), mine.rows));
          scores.resize(piece.rows * learner.model->scores());
          ASSERT_TRUE(strategy->Step(piece, strategy->Share(piece), scores).ok());
        }
        ASSERT_TRUE(strategy->EndEpoch().ok());
        weights[rank] = learner.Weights();
        rows[rank] = strategy->times().rows;
      });
      for (std::size_t rank = 0; rank < 4; ++rank) {
        EXPECT_EQ(weights[rank], weights[0]);
        EXPECT_EQ(rows[rank], rank * 37);
      }
    }
}

TEST(Strategy, CodecsLearnWhatPlainSumsLearn) {
  const Task task = MakeTask("perceptron", 600, 4);  // its blocks are of odd sizes, so there are gaps between them
  StrategyOptions options = Options("allreduce");
  const double plain = Train(task, 3, options, 400).loss;
  for (const std::string codec : {"fp16", "bf16", "int8", "1bit", "topk", "power"}) {
    options.codec = codec;
    options.top = 0.1;
    EXPECT_NEAR(Train(task, 3, options, 400).loss / plain, 1, 0.05) << codec;
  }
}

TEST(Strategy, WhatOneAsksAllAgreeOn) {
  const Task task = MakeTask("table", 100, 3);
  fabric::RunMembers(3, [&](fabric::Fabric& fabric) {
    TestLearner learner(task);
    fabric::Collectives collectives(fabric);
    const auto strategy = Strategy::Make(Options("allreduce"), learner.World(collectives)).value();
    const data::Batch piece = task.rows.batch().Slice(0, strategy->piece());
    std::vector<float> scores(piece.rows);
    strategy->Ask(fabric.rank() == 2, fabric.rank() == 0);
    ASSERT_TRUE(strategy->Step(piece, strategy->Share(piece), scores).ok());
    EXPECT_TRUE(strategy->stop_agreed());
    EXPECT_TRUE(strategy->save_agreed());
    strategy->Ask(false, false);
    ASSERT_TRUE(strategy->Step(piece, strategy->Share(piece), scores).ok());
    EXPECT_FALSE(strategy->stop_agreed());
    EXPECT_FALSE(strategy->save_agreed());
    EXPECT_EQ(strategy->Sum({1.0, static_cast<double>(fabric.rank())}).value(), (std::vector<double>{3, 3}));
  });
}

TEST(Strategy, AWorkerThatGivesUpEndsTheOthersWithItsReason) {
  const Task task = MakeTask("convolution", 100, 4);
  fabric::RunMembers(3, [&](fabric::Fabric& fabric) {
    TestLearner learner(task);
    fabric::Collectives collectives(fabric);
    const auto strategy = Strategy::Make(Options("allreduce"), learner.World(collectives)).value();
    const data::Batch piece = task.rows.batch().Slice(0, strategy->piece());
    std::vector<float> scores(piece.rows * learner.model->scores());
    ASSERT_TRUE(strategy->Step(piece, strategy->Share(piece), scores).ok());
    if (fabric.rank() == 1) return fabric.Abort({Code::kBadInput, "a.csv:3: found x"});
    const auto ended = strategy->Step(piece, strategy->Share(piece), scores);
    ASSERT_FALSE(ended.ok());
    EXPECT_EQ(ended.error().code, Code::kPeerLost);
    EXPECT_NE(ended.error().text.find("a.csv:3"), std::string::npos) << ended.error().text;
    EXPECT_NE(ended.error().text.find("1"), std::string::npos);
  });
}

// Every form that loses something must keep what it lost.
TEST(Strategy, GoesOnFromWhatItSavedToTheSameBytes) {
  for (const std::string codec : {"none", "int8", "topk", "power"})
    for (const std::string name : {"linear", "perceptron"}) {
      SCOPED_TRACE(Str(codec, " ", name));
      const Task task = MakeTask(name, 1000, 5);
      base::ScratchDirectory scratch;
      std::vector<std::vector<float>> straight(2), resumed(2);
      const auto run = [&](fabric::Fabric& fabric, bool stop) {
        const auto rank = static_cast<std::size_t>(fabric.rank());
        base::PosixFiles files;
        StrategyOptions options = Options("allreduce");
        options.codec = codec;
        options.top = 0.1;
        auto learner = std::make_unique<TestLearner>(task);
        fabric::Collectives collectives(fabric);
        auto strategy = Strategy::Make(options, learner->World(collectives)).value();
        std::vector<float> scores;
        for (std::size_t step = 0; step < 20; ++step) {
          if (stop && step == 10) {
            const std::string path = Str(scratch.path(), "/part", rank);
            std::vector<data::Tensor> tensors;
            strategy->Save(tensors);
            ASSERT_TRUE(base::WriteAtomic(files, path, [&](base::OutputFile& file) {
                          return data::WriteTensors(file, tensors, {});
                        }).ok());
            const std::uint64_t at = learner->optimizer->step();
            auto next = std::make_unique<TestLearner>(task);
            next->parameters->CopyFrom(*learner->parameters);
            next->optimizer->SetStep(at);
            strategy = Strategy::Make(options, next->World(collectives)).value();
            learner = std::move(next);
            ASSERT_TRUE(strategy->Load(data::TensorFile::Read(files, path).value()).ok());
          }
          const data::Batch piece = task.rows.batch().Slice(step * 24, step * 24 + 24);
          const data::Batch mine = strategy->Share(piece);
          scores.resize(mine.rows * learner->model->scores());
          ASSERT_TRUE(strategy->Step(piece, mine, scores).ok());
        }
        (stop ? resumed : straight)[rank] = learner->Weights();
      };
      fabric::RunMembers(2, [&](fabric::Fabric& fabric) { run(fabric, false); });
      fabric::RunMembers(2, [&](fabric::Fabric& fabric) { run(fabric, true); });
      EXPECT_EQ(straight, resumed);
    }
}

TEST(Average, WithBlockMomentumAndAWarmStartStillLearns) {
  const Task task = MakeTask("perceptron", 6000, 6);
  StrategyOptions options = Options("average");
  options.every = 4;
  const double plain = Train(task, 3, options, 50).loss;
  options.block_momentum = 0.5;
  options.warm_start = 20;
  options.average_state = true;
  const auto moved = Train(task, 3, options, 50);
  EXPECT_LT(moved.loss, plain * 1.05);
  for (const auto& weights : moved.weights) EXPECT_EQ(weights, moved.weights[0]);
}

}  // namespace
}  // namespace freshet::strategy
