// Groups of workers through a parameter server: of all workers, or of one each, they are what they should be.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/option.h"
#include "strategy/worlds_testing.h"

namespace freshet::strategy {
namespace {

StrategyOptions By(const std::string& synchrony, int group, int servers = 0) {
  StrategyOptions options;
  options.kind = "groups";
  options.synchrony = synchrony;
  options.group = group;
  options.servers = servers;
  options.batch = 24;
  return options;
}

class ServerGroupsOf : public testing::TestWithParam<std::string> {};

TEST_P(ServerGroupsOf, OneOfAllWorkersIsAllReduce) {
  const Task task = MakeTask(GetParam(), 400, 3);
  for (const int workers : {1, 2, 4})
    for (const int servers : {0, 2}) {
      SCOPED_TRACE(Str(workers, " workers, ", servers, " servers"));
      StrategyOptions all;
      all.batch = 24;
      const Trained reduced = Train(task, workers, all, 1);
      const Trained grouped = Train(task, workers + servers, By("bsp", workers, servers), 1);
      for (const auto& weights : grouped.weights) EXPECT_EQ(weights, grouped.weights[0]);
      EXPECT_LT(Distance(reduced.weights[0], grouped.weights[0]), 1e-6);
      const Trained many = Train(task, workers, all, 30);
      const Trained more = Train(task, workers + servers, By("bsp", workers, servers), 30);
      EXPECT_LT(Distance(many.weights[0], more.weights[0]), 1e-3);
      EXPECT_NEAR(many.loss, more.loss, 1e-3 * std::abs(many.loss) + 1e-6);
    }
}

TEST_P(ServerGroupsOf, InBulkTheyAreOneWorkerOfTheWholeBatchWhateverTheirSize) {
  const Task task = MakeTask(GetParam(), 400, 4);
  StrategyOptions all;
  all.batch = 24;
  const Trained reduced = Train(task, 4, all, 1);
  for (const int group : {1, 2}) {
    const Trained grouped = Train(task, 4, By("bsp", group), 1);
    for (const auto& weights : grouped.weights) EXPECT_EQ(weights, grouped.weights[0]);
    EXPECT_LT(Distance(reduced.weights[0], grouped.weights[0]), 1e-6);
  }
  StrategyOptions uneven = By("bsp", 2, 1);
  uneven.uneven = true;
  EXPECT_LT(Distance(reduced.weights[0], Train(task, 4, uneven, 1).weights[0]), 1e-6);
}

TEST_P(ServerGroupsOf, OfOneEachAreTheServer) {
  const Task task = MakeTask(GetParam(), 400, 5);
  for (const int servers : {0, 1}) {
    StrategyOptions plain = By("bsp", 1, servers);
    plain.kind = "server";
    EXPECT_EQ(Train(task, 3 + servers, By("bsp", 1, servers), 25).weights, Train(task, 3 + servers, plain, 25).weights);
  }
}

INSTANTIATE_TEST_SUITE_P(Tasks, ServerGroupsOf,
                         testing::Values("linear", "fm", "factorization", "kmeans", "perceptron", "convolution"));

TEST(ServerGroups, LearnInEverySynchrony) {
  for (const std::string name : {"linear", "perceptron"}) {
    const Task task = MakeTask(name, 600, 6);
    StrategyOptions all;
    all.batch = 24;
    const Trained reduced = Train(task, 4, all, 50);
    for (const char* const synchrony : {"ssp:2", "asp:0.01", "bap"}) {
      SCOPED_TRACE(Str(name, " ", synchrony));
      const Trained grouped = Train(task, 4, By(synchrony, 2), 50);
      for (const auto& weights : grouped.weights) EXPECT_EQ(weights, grouped.weights[0]);
      EXPECT_LT(grouped.loss, 1.15 * reduced.loss);
    }
  }
}

// A group may be so many updates ahead of the slowest, and is, when that takes its time; within a group nobody is ahead.
TEST(ServerGroups, DriftApartAsFarAsTheSynchronyLetsThem) {
  const Task task = MakeTask("linear", 600, 7);
  for (const int staleness : {0, 1, 3}) {
    SCOPED_TRACE(staleness);
    std::array<std::atomic<int>, 4> begun{}, made{};  // by rank: steps, and gradients of who leads
    std::atomic<int> apart = 0;
    fabric::RunMembers(4, [&](fabric::Fabric& fabric) {
      const auto rank = static_cast<std::size_t>(fabric.rank());
      TestLearner learner(task);
      fabric::Collectives collectives(fabric);
      auto world = learner.World(collectives);
      world.at = [&](std::string_view place) -> Result<void> {
        if (place == "step.computed") ++made[rank];
        if (place != "step.agreed") return {};  // it has read what it needs
        const int ahead = made[rank] - made[rank == 0 ? 2 : 0];
        EXPECT_LE(ahead, staleness);
        if (rank == 0) apart = std::max(apart.load(), ahead);
        if (rank == 2) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        return {};
      };
      const auto strategy = Strategy::Make(By(Str("ssp:", staleness), 2), world).value();
      std::vector<float> scores;
      for (std::size_t step = 0; step < 20; ++step) {
        const data::Batch piece = task.rows.batch().Slice(24 * step, 24 * step + 24), mine = strategy->Share(piece);
        scores.resize(mine.rows);
        ++begun[rank];
        EXPECT_LE(begun[rank] - begun[rank ^ 1], 1);
        ASSERT_TRUE(strategy->Step(piece, mine, scores).ok());
      }
      ASSERT_TRUE(strategy->EndEpoch().ok());
    });
    EXPECT_EQ(apart, staleness);
  }
}

TEST(ServerGroups, RefuseWhatTheyCannotDo) {
  const Task task = MakeTask("linear", 40, 1);
  fabric::RunMembers(4, [&](fabric::Fabric& fabric) {
    TestLearner learner(task);
    fabric::Collectives collectives(fabric);
    const auto refused = [&](const auto& change) {
      StrategyOptions options = By("bap", 2);
      change(options);
      const auto made = Strategy::Make(options, learner.World(collectives));
      return made.ok() ? "" : ShowOptions(made.error().text);
    };
    EXPECT_EQ(refused([](StrategyOptions& o) { o.group = 3; }), "group 3 does not divide 4 workers");
    EXPECT_NE(refused([](StrategyOptions& o) { o.whole = false; }).find("use split rows"), std::string::npos);
    EXPECT_NE(refused([](StrategyOptions& o) { o.servers = 4; }).find("leave no worker"), std::string::npos);
    EXPECT_NE(refused([](StrategyOptions& o) { o.backup = 1; }).find("is for strategy allreduce and server"),
              std::string::npos);
    EXPECT_NE(refused([](StrategyOptions& o) { o.synchrony = "tap"; }).find("expected bsp"), std::string::npos);
  });
}

}  // namespace
}  // namespace freshet::strategy
