// An update that does not wait for the slowest has all its rows all the same, and all workers make it.

#include <gtest/gtest.h>

#include <thread>

#include "fabric/sim/cluster.h"
#include "fabric/sim/star_flows.h"
#include "strategy/worlds_testing.h"

namespace freshet::strategy {
namespace {

using namespace std::chrono_literals;

// A model that takes its time on one of the workers, now and then.
struct Slow {
  int rank = 0;
  std::chrono::milliseconds by{0};
};

struct Ended {
  std::vector<float> weights;
  double loss = 0;
  StepTimes times;
};

std::vector<Ended> Work(const Task& task, int workers, int backup, const std::vector<Slow>& slow, std::size_t steps) {
  StrategyOptions options;
  options.batch = 36;
  options.backup = backup;
  std::vector<Ended> ends(static_cast<std::size_t>(workers));
  fabric::RunMembers(workers, [&](fabric::Fabric& fabric) {
    const int rank = fabric.rank();
    TestLearner learner(task);
    fabric::Collectives collectives(fabric);
    auto world = learner.World(collectives);
    std::size_t step = 0;
    world.at = [&](std::string_view place) -> Result<void> {
      for (const Slow& one : slow)
        if (place == "step.computed" && one.rank == rank && step % 3 == 0) std::this_thread::sleep_for(one.by);
      return {};
    };
    const auto strategy = Strategy::Make(options, world).value();
    const data::Batch all = task.rows.batch();
    std::vector<float> scores;
    Ended& end = ends[static_cast<std::size_t>(rank)];
    for (step = 0; step < steps; ++step) {
      const std::size_t begin = step * strategy->piece() % (all.rows - strategy->piece() + 1);
      const data::Batch piece = all.Slice(begin, begin + strategy->piece()), mine = strategy->Share(piece);
      scores.resize(mine.rows * learner.model->scores());
      end.loss += strategy->Step(piece, mine, scores).value().value();
    }
    CHECK(strategy->EndEpoch().ok());
    end.weights = learner.Weights();
    end.times = strategy->times();
  });
  return ends;
}

TEST(Backup, AllMakeTheSameUpdatesOfAllRowsWhoeverIsSlow) {
  for (const std::string name : {"linear", "fm", "perceptron"}) {
    SCOPED_TRACE(name);
    const Task task = MakeTask(name, 2000, 11);
    const auto alone = Work(task, 1, 0, {}, 15);
    for (const std::vector<Slow>& slow : {std::vector<Slow>{}, {{2, 2ms}}, {{0, 2ms}}, {{0, 1ms}, {1, 2ms}, {3, 3ms}}})
      for (const int backup : {1, 2}) {
        SCOPED_TRACE(Str(slow.size(), " slow, ", backup, " not waited for"));
        const auto ends = Work(task, 4, backup, slow, 15);
        double loss = 0;
        for (const Ended& end : ends) {
          EXPECT_EQ(end.weights, ends[0].weights);
          EXPECT_EQ(end.times.steps, 15u);
          EXPECT_EQ(end.times.rows, 15u * 9);
          loss += end.loss;
        }
        EXPECT_LE(Distance(ends[0].weights, alone[0].weights), 1e-4);
        EXPECT_NEAR(loss, alone[0].loss, 0.05 * alone[0].loss);  // late ones judge by what they have, which is older
        if (HasFailure()) return;
      }
  }
}

TEST(Backup, WhoIsDoneMayLeaveWhileOthersStillNeedOneAnother) {
  const Task task = MakeTask("linear", 200, 3);
  StrategyOptions options;
  options.batch = 36;
  options.backup = 1;
  fabric::sim::Platform platform;
  platform.nodes = 3;
  fabric::sim::StarFlows flows(platform);
  fabric::sim::Cluster cluster({.platform = platform, .nodes = 3}, flows);
  cluster.Run([&](fabric::sim::Cluster::Member& member) {
    const auto connected = member.Connect();
    fabric::Fabric& fabric = *connected;
    TestLearner learner(task);
    fabric::Collectives collectives(fabric);
    const auto strategy = Strategy::Make(options, learner.World(collectives)).value();
    const data::Batch piece = task.rows.batch().Slice(0, 36), mine = strategy->Share(piece);
    std::vector<float> scores(mine.rows * learner.model->scores());
    ASSERT_TRUE(strategy->Step(piece, mine, scores).ok());
    ASSERT_TRUE(strategy->EndEpoch().ok());
    if (fabric.rank() == 2) return;
    member.clock().Sleep(20ms);  // it has gone
    constexpr fabric::Tag kTag = 7;
    int told = 5;
    const auto transfer = fabric.rank() == 0
                              ? fabric.StartSend(1, kTag, std::as_bytes(std::span(&told, 1)))
                              : fabric.StartReceive(0, kTag, std::as_writable_bytes(std::span(&told, 1)));
    ASSERT_TRUE(transfer.ok()) << transfer.error().text;
    const auto done = fabric.Wait(transfer.value());
    EXPECT_TRUE(done.ok()) << done.error().text;
  });
}

}  // namespace
}  // namespace freshet::strategy
