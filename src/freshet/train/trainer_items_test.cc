// Ratings on a ring past whose members items walk: the model of one who is alone, bit for bit.

#include <gtest/gtest.h>

#include <thread>

#include "base/option.h"
#include "fabric/sim/world.h"
#include "fabric/tcp/tcp_testing.h"
#include "fabric/threads/threads_testing.h"
#include "strategy/ring/items.h"
#include "strategy/worlds_testing.h"
#include "train/bench_testing.h"
#include "train/strata.h"

namespace freshet::train {
namespace {

class TrainerItemsTest : public testing::Test {
 protected:
  Plan Ratings(std::uint64_t rows = 1200) {
    Plan plan;
    plan.path = bench_.Generate({.kind = "ratings", .rows = rows, .users = 100, .items = 60}, "ratings");
    plan.input.format = "ratings";
    plan.model.kind = "factorization";
    plan.model.loss = "squared";
    plan.model.factors = 6;
    plan.optimizer.kind = "sgd";
    plan.optimizer.schedule = {"linear", 0.04};
    plan.optimizer.l2 = 0.05;
    plan.train.epochs = 3;
    plan.strategy.kind = "ring";
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

// Sums of losses are added up member by member: in another order than alone.
void ExpectSameModel(const BenchOutcome& got, const BenchOutcome& want) {
  ASSERT_TRUE(got.ok()) << got.error->text;
  ASSERT_TRUE(want.ok()) << want.error->text;
  EXPECT_EQ(got.weights, want.weights);
  EXPECT_EQ(got.description, want.description);
  EXPECT_EQ(got.report->rows, want.report->rows);
  EXPECT_EQ(got.report->epochs, want.report->epochs);
  EXPECT_EQ(got.report->progressive.rows(), want.report->progressive.rows());
  EXPECT_NEAR(got.report->progressive.loss(), want.report->progressive.loss(), 1e-12);
  EXPECT_NEAR(got.report->last_epoch.loss(), want.report->last_epoch.loss(), 1e-12);
  EXPECT_EQ(got.report->held_out_losses, want.report->held_out_losses);
}

TEST_F(TrainerItemsTest, AnyNumberOfMembersMakesTheModelOfOneWhateverTheRule) {
  Plan plan = Ratings();
  for (const std::string& rule : optimize::Optimizer::Kinds()) {
    plan.optimizer.kind = rule;
    const BenchOutcome alone = bench_.Run(plan);
    const bool all = rule == "sgd" || rule == "adam";
    for (const int workers : all ? std::vector{1, 2, 3, 4, 5, 6, 7, 8, 16} : std::vector{3}) {
      SCOPED_TRACE(Str(rule, ", ", workers, " members"));
      for (const BenchOutcome& outcome : Together(workers, plan)) ExpectSameModel(outcome, alone);
    }
  }
}

TEST_F(TrainerItemsTest, OfAsManyRatingsAsFitAtATimeItIsTheSameToo) {
  Plan plan = Ratings();
  plan.train.most_ratings = 200;  // several passes in an epoch: items stand where the last one left them
  plan.optimizer.kind = "adagrad";
  plan.optimizer.l1 = 1e-4;
  plan.model.loss = "logistic";
  const BenchOutcome alone = bench_.Run(plan);
  for (const int workers : {2, 5})
    for (const BenchOutcome& outcome : Together(workers, plan)) ExpectSameModel(outcome, alone);
}

TEST_F(TrainerItemsTest, WithFewerRatingsThanSidesSomeHaveNone) {
  Plan plan = Ratings(7);
  const BenchOutcome alone = bench_.Run(plan);
  for (const BenchOutcome& outcome : Together(8, plan)) ExpectSameModel(outcome, alone);
}

TEST_F(TrainerItemsTest, WhatIsHeldOutIsJudgedAfterEveryEpoch) {
  Plan plan = Ratings();
  plan.train.hold_out.fraction = 0.2;
  plan.train.epochs = 12;
  plan.train.patience = 1;
  const BenchOutcome alone = bench_.Run(plan);
  for (const BenchOutcome& outcome : Together(3, plan)) ExpectSameModel(outcome, alone);
}

TEST_F(TrainerItemsTest, SimulatedWorldsMakeTheSameBytesInAnyOrderOfEvents) {
  const Plan plan = Ratings();
  const auto threads = Together(3, plan);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    fabric::sim::World world({.size = 3, .seed = seed});
    std::vector<BenchOutcome> outcomes(3);
    world.Run([&](fabric::sim::World::Member& member) {
      const auto fabric = member.Connect();
      outcomes[static_cast<std::size_t>(member.rank())] =
          bench_.RunAs(*fabric, plan, member.DiskOver(bench_.files), &member.clock());
    });
    for (const BenchOutcome& outcome : outcomes) ExpectSame(outcome, threads[0]);
  }
}

TEST_F(TrainerItemsTest, OverSocketsTheyMakeTheSameBytes) {
  const Plan plan = Ratings();
  base::SystemClock clock;
  fabric::Members members = fabric::ConnectAll(3, clock);
  std::vector<BenchOutcome> outcomes(3);
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < 3; ++rank)
      threads.emplace_back([&, rank] {
        ASSERT_TRUE(members[rank].ok()) << members[rank].error().text;
        outcomes[rank] = bench_.RunAs(*members[rank].value(), plan);
      });
  }
  const auto want = Together(3, plan);
  for (const BenchOutcome& outcome : outcomes) ExpectSame(outcome, want[0]);
}

TEST_F(TrainerItemsTest, GoesOnAsIfItHadNeverStoppedWithAnyNumber) {
  Plan plan = Ratings();
  plan.optimizer.kind = "adagrad";
  plan.train.most_ratings = 300;
  plan.train.checkpoint_path = bench_.scratch / "run.ckpt";
  plan.clock_runs = true;
  const BenchOutcome whole = Together(3, plan)[0];
  ASSERT_TRUE(whole.ok()) << whole.error->text;
  for (int i = 0; i <= 2; ++i) {
    SCOPED_TRACE(Str("stopped at ", whole.told * i / 4, " of ", whole.told));
    Forget();
    for (const int workers : {3, 2}) {
      plan.stop_at = workers == 3 ? std::max(whole.told * i / 4, 1) : whole.told / 8;
      for (const BenchOutcome& stopped : Together(workers, plan)) {
        ASSERT_FALSE(stopped.ok());
        ASSERT_EQ(stopped.code(), Code::kStopped) << stopped.error->text;
      }
    }
    plan.stop_at = 0;
    const auto outcomes = Together(5, plan);
    EXPECT_EQ(outcomes[0].weights, whole.weights);
    for (const BenchOutcome& outcome : outcomes) ExpectSame(outcome, outcomes[0]);
  }
  Forget();
  plan.stop_at = whole.told / 2;
  ASSERT_EQ(Together(4, plan)[0].code(), Code::kStopped);
  plan.stop_at = 0;
  const BenchOutcome alone = bench_.Run(plan);
  ASSERT_TRUE(alone.ok()) << alone.error->text;
  EXPECT_EQ(alone.weights, whole.weights);
}

TEST_F(TrainerItemsTest, AllEndForALossThatIsNoNumberAndSayWhy) {
  Plan plan = Ratings();
  plan.optimizer.schedule = {"constant", 1e30};
  bool diverged = false;
  for (const BenchOutcome& outcome : Together(3, plan)) {
    ASSERT_FALSE(outcome.ok());
    diverged = diverged || outcome.code() == Code::kDiverged;
    EXPECT_NE(outcome.error->text.find("the loss is no longer finite"), std::string::npos) << outcome.error->text;
  }
  EXPECT_TRUE(diverged);
}

// What a member of a group has seen and sent when it has made passes over ratings of a task.
struct Walked {
  strategy::StepTimes times;
  std::vector<float> weights;
  bool stop = false, save = false;
};
Walked WalkAs(fabric::Fabric& fabric, const strategy::Task& task, int passes, bool asks = false) {
  strategy::TestLearner learner(task);
  fabric::Collectives collectives(fabric);
  strategy::StrategyOptions options;
  options.kind = "ring";
  options.batch = 1;
  const auto made = strategy::Strategy::Make(options, learner.World(collectives)).value();
  Strata strata(1);
  strata.Keep(made->walk()->users());
  for (std::size_t r = 0; r < task.rows.size(); ++r) strata.Add(RatingOf(task.rows.batch(), r));
  base::InlineExecutor executor;
  made->Ask(asks, asks);
  for (int pass = 0; pass < passes; ++pass) {
    const auto trained =
        strata.Train(executor, *learner.model->ratings(), *learner.parameters, *learner.optimizer, 0, 1,
                     [&](const auto& train) { return made->walk()->Pass(strata.grid(), strata.kept(), train); });
    EXPECT_TRUE(trained.ok()) << trained.error().text;
  }
  Walked walked;
  walked.times = made->times();
  walked.stop = made->stop_agreed();
  walked.save = made->save_agreed();
  EXPECT_TRUE(made->Settle().ok());
  walked.weights = learner.Weights();
  return walked;
}

TEST(Items, EachPassTakesThemOnceRoundWithWhatTheOptimizerRemembersAndNothingElse) {
  constexpr int kPasses = 3;
  for (const char* const rule : {"sgd", "adam"}) {
    strategy::Task task = strategy::MakeTask("factorization", 400, 1);
    task.optimizer.kind = rule;
    const strategy::TestLearner learner(task);
    const auto item = static_cast<std::uint64_t>((task.config.factors + 1) * (1 + learner.optimizer->slots()));
    const std::uint64_t items = 20;
    for (const int members : {1, 2, 3, 8}) {
      SCOPED_TRACE(Str(rule, ", ", members, " members"));
      std::vector<Walked> walked(static_cast<std::size_t>(members));
      fabric::RunMembers(members, [&](fabric::Fabric& fabric) {
        walked[static_cast<std::size_t>(fabric.rank())] = WalkAs(fabric, task, kPasses);
      });
      std::uint64_t ratings = 0;
      for (const Walked& each : walked) {
        EXPECT_EQ(each.weights, walked[0].weights);
        // All sides go past each member in a pass; the last of them, after the last pass, is told to all instead.
        const std::uint64_t all = kPasses * items * item * sizeof(float);
        EXPECT_LE(each.times.bytes_moved, members == 1 ? 0 : all);
        EXPECT_GE(each.times.bytes_moved, members == 1 ? 0 : all * 44 / 48 - all / 10);
        EXPECT_EQ(each.times.bytes_next + each.times.bytes_back, 0u);
        const std::uint64_t heads =
            members == 1 ? 0 : (kPasses * strategy::Grid::kSides - 1) * strategy::ring::Items::HeadBytes();
        EXPECT_EQ(each.times.bytes_sent + each.times.bytes_shared, each.times.bytes_moved + heads);
        EXPECT_EQ(each.times.steps, static_cast<std::uint64_t>(kPasses));
        ratings += each.times.rows;
      }
      EXPECT_EQ(ratings, kPasses * task.rows.size());
    }
  }
}

TEST(Items, WhatOneAsksAllAgreeOnWithTheSamePass) {
  const strategy::Task task = strategy::MakeTask("factorization", 200, 2);
  for (const int members : {1, 5, 16})
    fabric::RunMembers(members, [&](fabric::Fabric& fabric) {
      const Walked walked = WalkAs(fabric, task, 1, fabric.rank() == members - 1);
      EXPECT_TRUE(walked.stop);
      EXPECT_TRUE(walked.save);
      const Walked unasked = WalkAs(fabric, task, 1);
      EXPECT_FALSE(unasked.stop || unasked.save);
    });
}

TEST(Items, WhoIsNotAtTheSameRatingsIsToldSo) {
  const strategy::Task task = strategy::MakeTask("factorization", 200, 3);
  fabric::RunMembers(2, [&](fabric::Fabric& fabric) {
    strategy::TestLearner learner(task);
    fabric::Collectives collectives(fabric);
    strategy::StrategyOptions options;
    options.kind = "ring";
    options.batch = 1;
    const auto made = strategy::Strategy::Make(options, learner.World(collectives)).value();
    if (fabric.rank() == 1) learner.optimizer->SetStep(7);
    const auto failed = made->walk()->Pass(strategy::Grid{1}, 0, [](std::size_t) {});
    ASSERT_FALSE(failed.ok());
    fabric.Abort(failed.error());
    EXPECT_NE(failed.error().text.find("members of a ring are given the same ratings"), std::string::npos)
        << failed.error().text;
  });
}

TEST(Items, RefuseWhatDoesNotGoWithThem) {
  const auto refused = [](int members, const std::function<void(strategy::StrategyOptions&)>& change) {
    std::string text;
    fabric::RunMembers(members, [&](fabric::Fabric& fabric) {
      strategy::TestLearner learner(strategy::MakeTask("factorization", 40, 1));
      fabric::Collectives collectives(fabric);
      strategy::StrategyOptions options;
      options.kind = "ring";
      options.batch = 1;
      change(options);
      const auto made = strategy::Strategy::Make(options, learner.World(collectives));
      if (fabric.rank() == 0) text = made.ok() ? "" : ShowOptions(made.error().text, "");
    });
    return text;
  };
  using Options = strategy::StrategyOptions;
  EXPECT_EQ(refused(16, [](Options&) {}), "");
  EXPECT_EQ(refused(17, [](Options&) {}),
            "strategy ring: 17 workers, and users are of 16 sides, of which each needs one; use at most 16");
  EXPECT_EQ(refused(2, [](Options& o) { o.batch = 4; }),
            "batch 4 does not go with strategy ring and model factorization: ratings are learned from one after "
            "another; leave it out");
  EXPECT_EQ(refused(2, [](Options& o) { o.codec = "int8"; }),
            "strategy ring does not go with codec int8: items travel themselves, and nothing of them may be lost; "
            "leave it out");
  EXPECT_EQ(refused(2, [](Options& o) { o.micro = 4; }),
            "micro 4 is for networks: ratings are learned from one after another; leave it out");
  EXPECT_NE(refused(2, [](Options& o) { o.whole = false; }).find("split"), std::string::npos);
}

}  // namespace
}  // namespace freshet::train
