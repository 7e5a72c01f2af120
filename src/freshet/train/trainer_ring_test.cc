// Trainings whose members are a ring: one model, whatever the cut, and who goes on with it.

#include "base/option.h"
#include "fabric/sim/world.h"
#include "fabric/threads/threads_testing.h"
#include "model/network/description.h"
#include "model/network/zoo.h"
#include "train/bench_testing.h"

namespace freshet::train {
namespace {

class TrainerRingTest : public testing::Test {
 protected:
  Plan Sea() {
    model::network::Graph graph({3});
    int at = graph.Relu(graph.Dense(0, 8, "first"));
    at = graph.Dropout(graph.Relu(graph.Dense(at, 6, "second")), 0.3);
    graph.AddHead(graph.Dense(at, 1, "scores"));
    Plan plan;
    plan.path = bench_.Generate({.kind = "sea", .rows = 150}, "sea");
    plan.model.kind = "network";
    plan.model.network = ToToml(graph);
    plan.optimizer.kind = "momentum";
    plan.optimizer.schedule = {"linear", 0.02};
    plan.train.batch = 12;
    plan.train.accumulate = 3;
    plan.train.epochs = 2;
    plan.train.shuffle = true;
    plan.train.hold_out.fraction = 0.2;
    plan.train.checkpoint_path = bench_.scratch / "run.ckpt";
    plan.clock_runs = true;
    plan.strategy.kind = "ring";
    plan.strategy.micro = 3;
    return plan;
  }
  // By rank.
  std::vector<BenchOutcome> Together(int workers, const Plan& plan) {
    std::vector<BenchOutcome> outcomes(static_cast<std::size_t>(workers));
    fabric::RunMembers(workers, [&](fabric::Fabric& fabric) {
      outcomes[static_cast<std::size_t>(fabric.rank())] = bench_.RunAs(fabric, plan);
    });
    return outcomes;
  }
  void Forget() {
    for (const std::string& name : bench_.scratch.Names())
      if (name.starts_with("run.ckpt")) ASSERT_TRUE(bench_.files.Remove(bench_.scratch / name).ok());
  }

  Bench bench_;
};

void ExpectNear(const BenchOutcome& got, const BenchOutcome& want) {
  ASSERT_TRUE(got.ok()) << got.error->text;
  ASSERT_TRUE(want.ok()) << want.error->text;
  for (std::size_t b = 0; b < want.weights.size(); ++b)
    for (std::size_t i = 0; i < want.weights[b].size(); ++i) ASSERT_NEAR(got.weights[b][i], want.weights[b][i], 1e-4);
  EXPECT_EQ(got.report->rows, want.report->rows);
  EXPECT_EQ(got.report->progressive.rows(), want.report->progressive.rows());
  EXPECT_NEAR(got.report->progressive.loss(), want.report->progressive.loss(), 1e-4);
  EXPECT_NEAR(*got.report->progressive.error_rate(), *want.report->progressive.error_rate(), 1e-9);
  ASSERT_EQ(got.report->held_out_losses.size(), want.report->held_out_losses.size());
  for (std::size_t e = 0; e < want.report->held_out_losses.size(); ++e)
    EXPECT_NEAR(got.report->held_out_losses[e], want.report->held_out_losses[e], 1e-4);
}

TEST_F(TrainerRingTest, MakesTheModelOfOneWorkerAndAllHaveIt) {
  const Plan plan = Sea();
  const BenchOutcome alone = bench_.Run(plan);
  for (const int workers : {2, 3, 5}) {
    SCOPED_TRACE(Str(workers, " workers"));
    Forget();
    const auto outcomes = Together(workers, plan);
    ExpectNear(outcomes[0], alone);
    for (const BenchOutcome& outcome : outcomes) ExpectSame(outcome, outcomes[0]);
  }
}

TEST_F(TrainerRingTest, GoesOnAsIfItHadNeverStoppedAfterAnyUpdate) {
  Plan plan = Sea();
  for (const std::string pipeline : {"1f1b", "interleaved"}) {
    plan.strategy.pipeline = pipeline;
    Forget();
    const BenchOutcome whole = Together(3, plan)[0];
    ASSERT_TRUE(whole.ok()) << whole.error->text;
    for (int i = 1; i <= 3; ++i) {
      SCOPED_TRACE(Str("stopped at ", whole.told * i / 4, " of ", whole.told));
      Forget();
      plan.stop_at = std::max(whole.told * i / 4, 1);
      for (const BenchOutcome& stopped : Together(3, plan)) {
        ASSERT_FALSE(stopped.ok());
        ASSERT_EQ(stopped.code(), Code::kStopped) << stopped.error->text;
      }
      plan.stop_at = 0;
      ExpectSame(Together(3, plan)[0], whole);
    }
  }
}

TEST_F(TrainerRingTest, AnotherNumberGoesOnWithTheSameModel) {
  Plan plan = Sea();
  const BenchOutcome whole = Together(3, plan)[0];
  Forget();
  for (const int workers : {3, 2}) {
    plan.stop_at = whole.told / 4;
    const BenchOutcome stopped = Together(workers, plan)[0];
    ASSERT_FALSE(stopped.ok());
    ASSERT_EQ(stopped.code(), Code::kStopped) << stopped.error->text;
  }
  plan.stop_at = 0;
  ExpectNear(Together(5, plan)[0], whole);
}

// Of columns, where each member reads a part of the rows, of which the last ends sooner than the others.
TEST_F(TrainerRingTest, OfPartsOfTheRowsItMakesTheModelOfAllReduceAndGoesOnAfterAnyUpdate) {
  for (const std::string rule : {"adaptive", "ftrl"}) {
    Plan plan = Sea();
    plan.model = {};
    plan.optimizer.kind = rule;
    plan.optimizer.schedule = {"linear", 0.1};
    plan.train.accumulate = 1;
    plan.strategy.micro = 0;
    plan.strategy.whole = false;
    plan.strategy.kind = "allreduce";
    Forget();
    const BenchOutcome summed = Together(3, plan)[0];
    plan.strategy.kind = "ring";
    Forget();
    const auto whole = Together(3, plan);
    ExpectNear(whole[0], summed);
    for (const BenchOutcome& outcome : whole) EXPECT_EQ(outcome.weights, whole[0].weights);
    for (int i = 1; i <= 5; ++i) {
      SCOPED_TRACE(Str(rule, " stopped at ", whole[0].told * i / 6, " of ", whole[0].told));
      Forget();
      plan.stop_at = std::max(whole[0].told * i / 6, 1);
      for (const BenchOutcome& stopped : Together(3, plan)) {
        ASSERT_FALSE(stopped.ok());
        ASSERT_EQ(stopped.code(), Code::kStopped) << stopped.error->text;
      }
      plan.stop_at = 0;
      if (i == 3) {
        const BenchOutcome other = Together(2, plan)[0];
        ASSERT_FALSE(other.ok());
        EXPECT_NE(other.error->text.find("written by 3 workers, now 2"), std::string::npos) << other.error->text;
      }
      const auto resumed = Together(3, plan);
      ExpectSame(resumed[0], whole[0]);
      for (const BenchOutcome& outcome : resumed) EXPECT_EQ(outcome.weights, whole[0].weights);
    }
  }
}

// In simulated time, where one of three is slow and hands columns to its neighbour.
TEST_F(TrainerRingTest, WithColumnsThatMoveTheModelAndItsCheckpointsStayRight) {
  Plan plan = Sea();
  plan.path = bench_.Generate({.kind = "hyperplane", .rows = 400, .features = 24}, "hyperplane");
  plan.model = {};
  plan.optimizer.kind = "adagrad";
  plan.train.accumulate = 1;
  plan.strategy.micro = 0;
  const BenchOutcome alone = bench_.Run(plan);
  plan.strategy.balance = true;
  const auto together = [&](int workers, std::uint64_t seed) {
    std::vector<BenchOutcome> outcomes(static_cast<std::size_t>(workers));
    fabric::sim::World world({.size = workers, .seed = seed});
    world.Run([&](fabric::sim::World::Member& member) {
      const auto fabric = member.Connect();
      Plan mine = plan;
      mine.computing = [&] { member.Compute(std::chrono::milliseconds(member.rank() == 0 ? 20 : 10)); };
      outcomes[static_cast<std::size_t>(member.rank())] =
          bench_.RunAs(*fabric, mine, member.DiskOver(bench_.files), &member.clock());
    });
    for (const BenchOutcome& outcome : outcomes) EXPECT_EQ(outcome.weights, outcomes[0].weights);
    return std::move(outcomes[0]);
  };
  Forget();
  const BenchOutcome whole = together(3, 1);
  ExpectNear(whole, alone);
  for (const int others : {3, 2}) {
    Forget();
    plan.stop_at = whole.told / 2;
    ASSERT_GT(plan.stop_at, 2);
    const BenchOutcome stopped = together(3, 2);
    ASSERT_FALSE(stopped.ok());
    ASSERT_EQ(stopped.code(), Code::kStopped) << stopped.error->text;
    plan.stop_at = 0;
    ExpectNear(together(others, 3), whole);
  }
}

// Each finds out by itself; who is later may learn it from who gave up.
TEST_F(TrainerRingTest, AllStopForALossThatIsNoNumberAndSayWhy) {
  Plan plan = Sea();
  plan.optimizer.schedule = {"constant", 1e30};
  bool diverged = false;
  for (const BenchOutcome& outcome : Together(3, plan)) {
    ASSERT_FALSE(outcome.ok());
    diverged = diverged || outcome.code() == Code::kDiverged;
    EXPECT_NE(outcome.error->text.find("the loss is no longer finite"), std::string::npos) << outcome.error->text;
  }
  EXPECT_TRUE(diverged);
}

}  // namespace
}  // namespace freshet::train
