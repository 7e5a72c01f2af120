// Layers that move between members while they train change nothing of what is learned, and are where a checkpoint says.

#include "strategy/ring/layer_moves.h"

#include <gtest/gtest.h>

#include "strategy/ring/ring_testing.h"

namespace freshet::strategy::ring {
namespace {

// Time goes on whenever somebody looks, and more so for some.
class Looked final : public base::Clock {
 public:
  explicit Looked(Duration each) : each_(each) {}
  Duration Now() const override { return now_ += each_; }
  Duration Wall() const override { return now_; }
  void Sleep(Duration duration) override { now_ += duration; }

 private:
  const Duration each_;
  mutable Duration now_{};
};

Looked ClockOf(int rank, int slow) { return Looked(std::chrono::milliseconds(rank == slow ? 10 : 1)); }

Strategy::World With(TestLearner& learner, fabric::Collectives& collectives, const base::Clock& clock) {
  return {collectives, *learner.model, *learner.parameters, *learner.optimizer, learner.memory, clock};
}

StrategyOptions Balanced(const std::string& pipeline = "1f1b") {
  StrategyOptions options = RingOptions(pipeline);
  options.balance = true;
  return options;
}

std::vector<Made> TrainBalanced(const Task& task, int members, int slow, const StrategyOptions& options,
                                std::size_t steps) {
  std::vector<Made> runs(static_cast<std::size_t>(members));
  OnThreads(members, [&](fabric::Fabric& fabric) {
    TestLearner learner(task);
    fabric::Collectives collectives(fabric);
    const Looked clock = ClockOf(fabric.rank(), slow);
    const auto strategy = Strategy::Make(options, With(learner, collectives, clock)).value();
    runs[static_cast<std::size_t>(fabric.rank())] = Steps(task, learner, *strategy, {24, 23}, steps);
  });
  return runs;
}

TEST(LayerMoves, ChangeNothingOfWhatIsLearned) {
  int moving = 0;  // trainings in which weights moved; who has few layers keeps them
  for (const std::string name : {"perceptron", "branches", "normalised", "sequence", "autoencoder"})
    for (const std::string pipeline : {"1f1b", "interleaved"})
      for (const int slow : {0, 1}) {
        SCOPED_TRACE(Str(name, ", ", pipeline, ", rank ", slow, " is slow"));
        if (name == "sequence" && pipeline == "interleaved") continue;  // too few layers
        const Task task = RingTask(name);
        const int members = name == "perceptron" || name == "sequence" ? 2 : 3;
        const auto runs = TrainBalanced(task, members, slow, Balanced(pipeline), 12);
        const Made alone = TrainAlone(task, RingOptions(pipeline), {24, 23}, 12);
        std::uint64_t moved = 0;
        for (const Made& run : runs) {
          moved += run.times.bytes_moved;
          EXPECT_EQ(run.weights, runs[0].weights);
          EXPECT_EQ(run.state, runs[0].state);
        }
        moving += moved > 0 ? 1 : 0;
        EXPECT_LE(Distance(alone.weights, runs[0].weights), 1e-3);
        if (!alone.state.empty()) {
          EXPECT_LE(Distance(alone.state, runs[0].state), 1e-3);
        }
      }
  EXPECT_GE(moving, 10);
}

TEST(LayerMoves, GoFromWhoIsSlow) {
  const auto runs = TrainBalanced(RingTask("branches"), 3, 1, Balanced(), 12);
  EXPECT_EQ(runs[0].times.bytes_moved, 0u);
  EXPECT_GT(runs[1].times.bytes_moved, 0u);
  EXPECT_EQ(runs[2].times.bytes_moved, 0u);
}

// What a member says of itself, as bytes.
std::string SavedBy(const Strategy& strategy) {
  std::vector<data::Tensor> tensors;
  strategy.Save(tensors);
  base::StringFile file;
  CHECK(data::WriteTensors(file, tensors, {}).ok());
  return std::move(file.text);
}

TEST(LayerMoves, AreWhereACheckpointSaysAndGoOnToTheSameBits) {
  Task task = RingTask("branches");
  task.optimizer.kind = "momentum";
  OnThreads(3, [&](fabric::Fabric& fabric) {
    fabric::Collectives collectives(fabric);
    const Looked clock = ClockOf(fabric.rank(), 0);
    TestLearner learner(task), later(task);
    const auto strategy = Strategy::Make(Balanced(), With(learner, collectives, clock)).value();
    const std::string begun = SavedBy(*strategy);
    Steps(task, learner, *strategy, {24}, 5);  // layers have moved after the fourth
    const std::string saved = SavedBy(*strategy);
    if (fabric.rank() == 0) {
      EXPECT_NE(saved, begun);
    }
    later.parameters->CopyFrom(*learner.parameters);
    later.optimizer->state().CopyFrom(learner.optimizer->state());
    later.optimizer->SetStep(learner.optimizer->step());
    const auto again = Strategy::Make(RingOptions(), later.World(collectives)).value();
    ASSERT_TRUE(again->Load(data::TensorFile::Parse(saved, "a part").value()).ok());
    EXPECT_EQ(SavedBy(*again), saved);
    const Made on = Steps(task, learner, *strategy, {24}, 2), resumed = Steps(task, later, *again, {24}, 2);
    EXPECT_EQ(on.weights, resumed.weights);
    EXPECT_EQ(on.state, resumed.state);
    EXPECT_EQ(on.losses, resumed.losses);
  });
}

TEST(LayerMoves, OfADamagedCheckpointAreRefused) {
  const Task task = RingTask("perceptron");
  OnThreads(2, [&](fabric::Fabric& fabric) {
    TestLearner learner(task);
    fabric::Collectives collectives(fabric);
    const auto strategy = Strategy::Make(RingOptions(), learner.World(collectives)).value();
    for (const std::vector<std::uint32_t>& layers :
         {std::vector<std::uint32_t>{0, 400}, {3, 3}, {2, 1}, {0, 2, 2, 3}, {}}) {
      base::StringFile file;
      const std::vector<data::Tensor> tensors = {{"ring.layers",
                                                  data::DType::kU32,
                                                  {layers.size() / 2, 2},
                                                  std::as_bytes(std::span<const std::uint32_t>(layers))}};
      ASSERT_TRUE(data::WriteTensors(file, tensors, {}).ok());
      const auto loaded = strategy->Load(data::TensorFile::Parse(file.text, "a part").value());
      ASSERT_FALSE(loaded.ok());
      EXPECT_EQ(loaded.error().code, Code::kCorrupt);
    }
  });
}

}  // namespace
}  // namespace freshet::strategy::ring
