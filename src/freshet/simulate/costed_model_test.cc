#include "simulate/costed_model.h"

#include <gtest/gtest.h>

#include "fabric/sim/cluster.h"
#include "fabric/sim/star_flows.h"
#include "simulate/calibration.h"
#include "strategy/worlds_testing.h"

namespace freshet::simulate {
namespace {

using fabric::Algorithm;
using fabric::sim::Cluster;

// With real values, a simulated training is the one of threads, bit for bit, by every topology that has a name.
TEST(CostedModel, RealValuesAreThoseOfThreads) {
  constexpr int kWorkers = 3, kSteps = 4;
  fabric::sim::Platform platform;
  platform.nodes = kWorkers;
  for (const char* const name : {"perceptron", "linear"})
    for (const char* const kind : {"allreduce", "average"})
      for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree, Algorithm::kCentral, Algorithm::kHalving}) {
        SCOPED_TRACE(Str(name, " ", kind, " ", NameOf(algorithm)));
        const strategy::Task task = strategy::MakeTask(name, 200, 7);
        strategy::StrategyOptions options;
        options.kind = kind;
        options.batch = 24;
        options.every = 2;
        const auto real = strategy::Train(task, kWorkers, options, kSteps, algorithm);

        const std::size_t blocks = model::Model::Make(task.config).value()->Blocks().size();
        const MeasuredCosts costs({{8, 1, {std::vector<double>(blocks, 0.5), 1, 0.25}}});
        fabric::sim::StarFlows flows(platform);
        Cluster cluster({.platform = platform, .nodes = kWorkers}, flows);
        std::vector<std::vector<float>> weights(kWorkers);
        cluster.Run([&](Cluster::Member& member) {
          strategy::TestLearner learner(task);
          const CostedModel costed(*learner.model, costs, CostedModel::Values::kReal,
                                   [&](double seconds, int cores) { member.cores().Work(seconds, cores); });
          const auto fabric = member.Connect();
          fabric::Collectives collectives(*fabric, {.algorithm = algorithm});
          const auto strategy = strategy::Strategy::Make(options, {collectives, costed, *learner.parameters,
                                                                   *learner.optimizer, learner.memory, member.clock()})
                                    .value();
          const data::Batch all = task.rows.batch();
          std::vector<float> scores;
          for (std::size_t step = 0; step < kSteps; ++step) {
            const std::size_t begin = step * strategy->piece() % (all.rows - strategy->piece() + 1);
            const data::Batch piece = all.Slice(begin, begin + strategy->piece());
            const data::Batch mine = strategy->Share(piece);
            scores.resize(mine.rows * costed.scores());
            strategy->SetProgress(static_cast<double>(step) / kSteps);
            ASSERT_TRUE(strategy->Step(piece, mine, scores).ok());
          }
          ASSERT_TRUE(strategy->EndEpoch().ok());
          weights[static_cast<std::size_t>(member.rank())] = learner.Weights();
        });
        EXPECT_EQ(weights, real.weights);
        const int updates = std::string_view(kind) == "average" ? 2 * kSteps : kSteps;
        EXPECT_GT(base::Seconds(cluster.now()), 1.25 * updates);
        EXPECT_LT(base::Seconds(cluster.now()), 1.35 * updates);
      }
}

TEST(MeasuredCosts, LieBetweenWhatWasMeasured) {
  const MeasuredCosts costs({{10, 1, {{4, 2}, 5, 1}}, {20, 1, {{6, 3}, 8, 1}}, {10, 2, {{3, 1}, 3.5, 0.5}}});
  EXPECT_DOUBLE_EQ(costs.Of(10, 1).compute, 5);
  EXPECT_DOUBLE_EQ(costs.Of(15, 1).compute, 6.5);
  EXPECT_EQ(costs.Of(15, 1).finished, (std::vector<double>{5, 2.5}));
  EXPECT_DOUBLE_EQ(costs.Of(40, 1).compute, 16);
  EXPECT_DOUBLE_EQ(costs.Of(5, 1).compute, 2.5);
  EXPECT_DOUBLE_EQ(costs.Of(40, 1).apply, 1);  // which has nothing to do with rows
  EXPECT_DOUBLE_EQ(costs.Of(10, 2).compute, 3.5);
  EXPECT_DOUBLE_EQ(costs.Of(10, 4).compute, 1.75);
}

TEST(Calibration, IsReadAsItWasWritten) {
  Calibration calibration;
  calibration.platform.name = "here";
  calibration.platform.local_us = 1.2345678901234567;
  calibration.work = {{"encode int8", 1e-10}, {"decode int8", 2e-10}};
  calibration.models = {{"lenet5", "", {{8, 1, {{0.1, 0.2}, 0.3, 0.05}}}}, {"mlp", "16", {{4, 2, {{1}, 2, 3}}}}};
  const auto again = Calibration::FromJson(calibration.ToJson(), "file");
  ASSERT_TRUE(again.ok()) << again.error().text;
  EXPECT_EQ(again.value().ToJson(), calibration.ToJson());
  EXPECT_TRUE(again.value().CostsOf("mlp", "16").ok());
  EXPECT_FALSE(again.value().CostsOf("mlp", "").ok());
  for (const std::string text :
       {"", "{", "[]", "{\"platform\":3}", R"({"platform":"","name":"a","work":{},"models":[{}]})",
        R"({"platform":"","name":"a","work":{},"models":[{"model":"m","input":"","points":[]}]})"}) {
    const auto broken = Calibration::FromJson(text, "file");
    ASSERT_FALSE(broken.ok()) << text;
    EXPECT_EQ(broken.error().code, Code::kCorrupt);
  }
}

}  // namespace
}  // namespace freshet::simulate
