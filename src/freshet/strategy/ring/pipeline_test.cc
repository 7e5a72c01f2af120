// A ring is one worker that computes its updates in as many parts, whatever the network, the cut and the schedule.

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/option.h"
#include "model/network/graphs_testing.h"
#include "strategy/ring/ring_testing.h"

namespace freshet::strategy::ring {
namespace {

double LossOf(const std::vector<Made>& runs) {
  double sum = 0;
  for (const Made& run : runs) sum += std::accumulate(run.losses.begin(), run.losses.end(), 0.0);
  return sum;
}

// All members have the same; it is what one worker has, after a step and after many.
void ExpectSerial(const Task& task, int members, const StrategyOptions& options, const Group& group = OnThreads) {
  const auto batch = static_cast<std::size_t>(options.batch);
  const std::vector<std::size_t> sizes = {batch, batch - 1, 3};  // cut unevenly, and few
  for (const std::size_t steps : {1, 8}) {
    SCOPED_TRACE(Str(steps, " steps of ", task.name, " by ", members, " members, ", options.pipeline));
    const Made alone = TrainAlone(task, options, sizes, steps);
    const std::vector<Made> runs = TrainRing(task, members, options, sizes, steps, group);
    for (const Made& run : runs) {
      ASSERT_EQ(run.weights.size(), alone.weights.size());
      EXPECT_EQ(run.weights, runs[0].weights);
      EXPECT_EQ(run.state, runs[0].state);
    }
    EXPECT_LE(Distance(alone.weights, runs[0].weights), steps == 1 ? 1e-5 : 1e-3);
    if (!alone.state.empty()) {
      EXPECT_LE(Distance(alone.state, runs[0].state), steps == 1 ? 1e-5 : 1e-3);
    }
    const double loss = LossOf({alone});
    ASSERT_TRUE(std::isfinite(loss));
    EXPECT_NEAR(LossOf(runs), loss, (steps == 1 ? 1e-5 : 5e-3) * loss);
    if (steps > 1) continue;
    std::vector<float> scores;  // of all rows, by all members
    for (const Made& run : runs) scores.insert(scores.end(), run.scores.begin(), run.scores.end());
    EXPECT_LE(Distance(alone.scores, scores), 1e-5);
  }
}

class PipelineOf : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Networks, PipelineOf,
                         testing::Values("perceptron", "branches", "normalised", "sequence", "autoencoder"),
                         [](const auto& p) { return p.param; });

TEST_P(PipelineOf, IsOneWorkerWhoComputesInParts) {
  const Task task = RingTask(GetParam());
  const int layers = GetParam() == "sequence"     ? 3
                     : GetParam() == "perceptron" ? 4
                     : GetParam() == "branches"   ? 20
                     : GetParam() == "normalised" ? 12
                                                  : 7;
  for (const std::string pipeline : {"flush", "1f1b", "interleaved"})
    for (const int members : {1, 2, 3, 5, 8}) {
      if ((pipeline == "interleaved" ? 2 : 1) * members > layers) continue;
      ExpectSerial(task, members, RingOptions(pipeline));
    }
}

TEST_P(PipelineOf, IsSoInSimulatedTimeToo) {
  const Task task = RingTask(GetParam());
  ExpectSerial(task, 3, RingOptions("1f1b"), InSimulatedTime);
  ExpectSerial(task, 2, RingOptions("flush"), InSimulatedTime);
}

TEST_P(PipelineOf, GivesTheSameBytesTwice) {
  const Task task = RingTask(GetParam());
  const auto once = TrainRing(task, 3, RingOptions(), {24}, 6), again = TrainRing(task, 3, RingOptions(), {24}, 6);
  EXPECT_EQ(once[0].weights, again[0].weights);
  EXPECT_EQ(once[0].losses, again[0].losses);
  EXPECT_EQ(once[0].weights, TrainRing(task, 3, RingOptions(), {24}, 6, InSimulatedTime)[0].weights);
}

TEST_P(PipelineOf, ThatComputesAgainInPlaceOfKeepingHasTheSameBits) {
  const Task task = RingTask(GetParam());
  for (const std::string pipeline : {"flush", "1f1b", "interleaved"}) {
    if (pipeline == "interleaved" && GetParam() == "sequence") continue;  // too few layers
    const int members = GetParam() == "sequence" || GetParam() == "perceptron" ? 2 : 3;
    StrategyOptions options = RingOptions(pipeline);
    const auto kept = TrainRing(task, members, options, {24, 23, 3}, 6);
    options.recompute = true;
    const auto again = TrainRing(task, members, options, {24, 23, 3}, 6);
    for (std::size_t rank = 0; rank < kept.size(); ++rank) {
      EXPECT_EQ(again[rank].weights, kept[rank].weights) << pipeline;
      EXPECT_EQ(again[rank].state, kept[rank].state) << pipeline;
      EXPECT_EQ(again[rank].losses, kept[rank].losses) << pipeline;
      EXPECT_EQ(again[rank].scores, kept[rank].scores) << pipeline;
    }
  }
}

// Of each value that travels so much is lost, once for each stage it passes.
TEST_P(PipelineOf, WhoseTensorsAreRoundedLearnsNearlyTheSame) {
  const Task task = RingTask(GetParam());
  const int members = GetParam() == "sequence" || GetParam() == "perceptron" ? 2 : 3;
  const auto exact = TrainRing(task, members, RingOptions(), {24}, 40);
  for (const auto& [codec, bound, less] :
       {std::tuple("fp16", 0.001, 1.9), {"bf16", 0.005, 1.9}, {"int8", 0.005, 3.0}}) {
    SCOPED_TRACE(codec);
    StrategyOptions options = RingOptions();
    options.codec = codec;
    const auto rounded = TrainRing(task, members, options, {24}, 40),
               again = TrainRing(task, members, options, {24}, 40);
    EXPECT_EQ(rounded[0].weights, again[0].weights);
    EXPECT_NE(rounded[0].weights, exact[0].weights);
    EXPECT_NEAR(LossOf(rounded), LossOf(exact), bound * LossOf(exact));
    RecordProperty(Str(GetParam(), "_", codec), Str(std::abs(LossOf(rounded) / LossOf(exact) - 1)));
    constexpr std::uint64_t kTidings = 400 * 40;  // and scores
    const StepTimes &before = exact[0].times, &after = rounded[0].times;
    EXPECT_LT(less * static_cast<double>(after.bytes_next - std::min(kTidings, after.bytes_next)),
              static_cast<double>(before.bytes_next));
  }
}

TEST(Pipeline, OfLeNetIsOneWorkerToo) {
  Task task = RingTask("lenet5", 60);
  task.optimizer.schedule.rate = 0.002;
  ExpectSerial(task, 3, RingOptions("1f1b", 12, 3));
  ExpectSerial(task, 2, RingOptions("interleaved", 12, 3));
}

// Of 80 x 80 pixels, with its auxiliary heads, dropout and normalisation across channels.
TEST(Pipeline, OfGoogLeNetOfSmallImagesIsOneWorkerToo) {
  Task task = NetworkTask(model::network::MakeZoo("googlenet", {3, 80, 80}, 3).value(), 16, 1);
  task.optimizer.schedule.rate = 0.002;
  ExpectSerial(task, 3, RingOptions("1f1b", 6, 3));
  ExpectSerial(task, 2, RingOptions("interleaved", 6, 2));
}

TEST(Pipeline, OfEveryKindOfLayerAndAnyGraphIsOneWorker) {
  int cut = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    const model::network::Graph graph = model::network::RandomGraph(seed).graph();
    const auto task = RandomTask(graph, seed);
    if (!task) continue;
    const StrategyOptions options = RingOptions("1f1b", 12, 3);
    const Made alone = TrainAlone(*task, options, {12}, 1);
    ASSERT_TRUE(std::isfinite(alone.losses[0]));
    ASSERT_NE(alone.weights, TestLearner(*task).Weights());
    for (const int members : {2, 4, 6}) {
      StrategyOptions how = options;
      how.pipeline = members == 2 ? "interleaved" : "1f1b";
      if (static_cast<int>(graph.layers.size()) < 9) continue;  // enough of them count
      const auto runs = TrainRing(*task, members, how, {12}, 1);
      ASSERT_LE(Distance(alone.weights, runs[0].weights), 1e-5) << members << " members";
      ++cut;
    }
  }
  EXPECT_GE(cut, 30);
}

}  // namespace
}  // namespace freshet::strategy::ring
