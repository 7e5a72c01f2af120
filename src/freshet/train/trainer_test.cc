#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/option.h"
#include "base/random.h"
#include "model/network/description.h"
#include "model/network/zoo.h"
#include "train/bench_testing.h"

namespace freshet::train {
namespace {

class TrainerTest : public testing::Test {
 protected:
  Plan Sea(std::uint64_t rows, std::uint64_t drift_rows = 0) {
    Plan plan;
    plan.path = bench_.Generate({.kind = "sea", .rows = rows, .drift_rows = drift_rows}, Str("sea", rows));
    plan.optimizer.schedule.rate = 0.15;
    return plan;
  }
  Plan Sparse(std::uint64_t rows) {
    Plan plan;
    plan.path = bench_.Generate({.kind = "url-like", .rows = rows}, Str("url", rows));
    plan.optimizer.schedule.rate = 0.15;
    return plan;
  }
  Plan Ratings(std::uint64_t rows) {
    Plan plan;
    plan.path = bench_.Generate({.kind = "ratings", .rows = rows, .users = 100, .items = 60}, Str("ratings", rows));
    plan.model.kind = "factorization";
    plan.model.loss = "squared";
    plan.model.factors = 6;
    plan.optimizer.kind = "sgd";
    plan.optimizer.schedule = {"linear", 0.04};
    plan.optimizer.l2 = 0.05;
    plan.train.epochs = 3;
    return plan;
  }

  Bench bench_;
};

TEST_F(TrainerTest, ReachesTheNoiseFloorOfAStillConceptInOnePass) {
  Plan plan = Sea(20'000, 20'000);
  plan.chunk_bytes = 1 << 16;
  const BenchOutcome outcome = bench_.Run(plan);
  ASSERT_TRUE(outcome.ok()) << outcome.error->text;
  EXPECT_EQ(outcome.report->rows, 20'000u);
  EXPECT_LT(*outcome.report->progressive.error_rate(), 0.12);  // 10 % of the labels are wrong
}

TEST_F(TrainerTest, FollowsAPlaneThatTurns) {
  Plan plan;
  plan.path = bench_.Generate({.kind = "hyperplane", .rows = 20'000, .drift_rows = 200'000});
  plan.optimizer.schedule.rate = 0.15;
  plan.chunk_bytes = 1 << 16;
  const BenchOutcome outcome = bench_.Run(plan);
  ASSERT_TRUE(outcome.ok()) << outcome.error->text;
  EXPECT_LT(*outcome.report->progressive.error_rate(),
            0.15);  // 5 % of the labels are wrong, and what was right changes
}

TEST_F(TrainerTest, LearnsRatingsToNearTheirNoise) {
  Plan plan = Ratings(20'000);
  plan.train.epochs = 20;
  plan.train.hold_out.fraction = 0.1;
  plan.chunk_bytes = 1 << 16;
  const BenchOutcome outcome = bench_.Run(plan);
  ASSERT_TRUE(outcome.ok()) << outcome.error->text;
  EXPECT_LT(*outcome.report->held_out->rmse(), 0.9);  // noise of 0.7 and rounding
  EXPECT_LT(*outcome.report->last_epoch.rmse(), *outcome.report->progressive.rmse());
}

TEST_F(TrainerTest, GivesTheSameInOrderForAnyNumberOfThreads) {
  std::vector<Plan> plans = {Sea(3000), Sparse(60), Sea(3000), Sea(3000)};
  plans[1].train.epochs = 2;
  plans[2].train.batch = 7;
  plans[2].train.hold_out.fraction = 0.2;
  plans[3].train.shuffle = true;
  plans[3].train.shuffle_window_bytes = 20'000;
  plans[3].train.epochs = 2;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    SCOPED_TRACE(Str("plan ", i));
    const BenchOutcome one = bench_.Run(plans[i]);
    for (const int threads : {2, 3}) {
      plans[i].threads = threads;
      ExpectSame(bench_.Run(plans[i]), one);
    }
  }
}

TEST_F(TrainerTest, GivesTheSameForRatingsForAnyNumberOfThreads) {
  for (const std::size_t most : {1'500'000, 300}) {  // all in memory, or in parts
    SCOPED_TRACE(Str("at most ", most, " in memory"));
    Plan plan = Ratings(1000);
    plan.train.most_ratings = most;
    plan.train.hold_out.fraction = 0.1;
    const BenchOutcome one = bench_.Run(plan);
    for (const int threads : {2, 3}) {
      plan.threads = threads;
      ExpectSame(bench_.Run(plan), one);
    }
  }
}

TEST_F(TrainerTest, ThreadsThatShareAModelLearnAboutAsWellAsOne) {
  Plan plan = Sparse(3000);
  plan.chunk_bytes = 1 << 15;
  const BenchOutcome one = bench_.Run(plan);
  plan.threads = 3;
  plan.train.deterministic = false;
  const BenchOutcome shared = bench_.Run(plan);
  ASSERT_TRUE(one.ok() && shared.ok());
  EXPECT_FALSE(one.report->shared);
  EXPECT_TRUE(shared.report->shared);
  EXPECT_EQ(shared.report->rows, 3000u);
  EXPECT_EQ(shared.report->progressive.rows(), 3000u);
  EXPECT_NEAR(shared.report->progressive.loss(), one.report->progressive.loss(), 0.1 * one.report->progressive.loss());
}

TEST_F(TrainerTest, ThreadsThatShareAModelCountTheirStepsTogether) {
  Plan plan = Sparse(600);
  plan.optimizer.kind = "adagrad";
  plan.optimizer.schedule = {"constant", 0.1, 0, 100'000};  // still warming up at the end
  plan.train.epochs = 2;
  plan.chunk_bytes = 1 << 15;
  const BenchOutcome one = bench_.Run(plan);
  plan.threads = 2;
  plan.train.deterministic = false;
  const BenchOutcome shared = bench_.Run(plan);
  ASSERT_TRUE(one.ok() && shared.ok());
  ASSERT_TRUE(shared.report->shared);
  EXPECT_NEAR(shared.report->last_epoch.loss(), one.report->last_epoch.loss(), 0.02 * one.report->last_epoch.loss());
}

// Few rows, many features that mean nothing: each epoch fits the rows better and the world worse.
std::string MeaninglessRows() {
  base::Random random(3, "meaningless");
  std::string text;
  for (int row = 0; row < 80; ++row) {
    text += random.Below(2) == 0 ? "+1" : "-1";
    for (int j = 1; j <= 200; ++j)
      if (random.Below(10) == 0) text += Str(" ", j, ":1");
    text += "\n";
  }
  return text;
}

// Every way of training, for the tests of stopping and going on.
std::vector<std::pair<std::string, std::function<void(Plan&)>>> WaysOfTraining() {
  return {{"one pass", [](Plan&) {}},
          {"batches of 7", [](Plan& plan) { plan.train.batch = 7; }},
          {"shuffled, rate falling, 3 epochs",
           [](Plan& plan) {
             plan.train.shuffle = true;
             plan.train.shuffle_window_bytes = 9000;
             plan.train.epochs = 3;
             plan.optimizer.schedule.kind = "linear";
           }},
          {"shuffled batches, adam, warm-up",
           [](Plan& plan) {
             plan.train.shuffle = true;
             plan.train.batch = 5;
             plan.optimizer.kind = "adam";
             plan.optimizer.schedule.warmup_steps = 30;
           }},
          {"held-out rows and patience",
           [](Plan& plan) {
             plan.train.hold_out.fraction = 0.25;
             plan.train.patience = 1;
             plan.train.epochs = 4;
             plan.train.batch = 7;
             plan.optimizer.schedule.kind = "cosine";
             plan.optimizer.schedule.rate = 3;
           }},
          {"held-out rows, momentum",
           [](Plan& plan) {
             plan.train.hold_out.fraction = 0.25;
             plan.train.epochs = 2;
             plan.optimizer.kind = "momentum";
             plan.optimizer.schedule.rate = 0.001;
           }},
          {"ftrl, falling with the steps", [](Plan& plan) {
             plan.optimizer.kind = "ftrl";
             plan.optimizer.schedule = {"inverse", 0.1, 0.01};
             plan.train.epochs = 2;
           }}};
}

// Stops at every place where a run can be stopped, goes on, and compares with never having stopped.
void StopEverywhereAndGoOn(Bench& bench, Plan plan) {
  plan.train.fingerprint = "same";
  const BenchOutcome whole = bench.Run(plan);
  ASSERT_TRUE(whole.ok()) << whole.error->text;
  ASSERT_GT(whole.told, 3);
  const std::string checkpoint = bench.scratch / "run.ckpt";
  plan.train.checkpoint_path = checkpoint;
  int stops = 0, tries = 0;
  const int stride = plan.clock_runs ? std::max(whole.told / 25, 1) : 1;  // a few of many updates
  for (int at = 1; at <= whole.told; at += stride, ++tries) {
    SCOPED_TRACE(Str("stopped at ", at, " of ", whole.told));
    for (const std::string& name : {checkpoint, checkpoint + ".rows"}) (void)bench.files.Remove(name);
    plan.stop_at = at;
    const BenchOutcome stopped = bench.Run(plan);
    if (!stopped.ok()) {
      ASSERT_EQ(stopped.code(), Code::kStopped) << stopped.error->text;
      ++stops;
    }
    plan.stop_at = 0;
    const BenchOutcome resumed = bench.Run(plan);
    ExpectSame(resumed, whole);
    EXPECT_EQ(resumed.rated, whole.rated);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GE(stops, tries - 1);

  // Stopped again and again, after every single block, or so late that an update of a network is done by then.
  for (const std::string& name : {checkpoint, checkpoint + ".rows"}) (void)bench.files.Remove(name);
  plan.stop_at = plan.clock_runs ? 20 : 1;
  BenchOutcome last = bench.Run(plan);
  for (int runs = 1; !last.ok() && runs < 3 * whole.told; ++runs) {
    ASSERT_EQ(last.code(), Code::kStopped) << last.error->text;
    last = bench.Run(plan);
  }
  SCOPED_TRACE("stopped again and again");
  ExpectSame(last, whole);
}

TEST_F(TrainerTest, GoesOnAsIfItHadNeverStoppedOverDenseRows) {
  for (const auto& [name, change] : WaysOfTraining()) {
    SCOPED_TRACE(name);
    Plan plan = Sea(200);
    change(plan);
    StopEverywhereAndGoOn(bench_, plan);
  }
}

TEST_F(TrainerTest, GoesOnAsIfItHadNeverStoppedOverSparseRows) {
  for (const std::size_t i : {0, 2, 4}) {
    const auto [name, change] = WaysOfTraining()[i];
    SCOPED_TRACE(name);
    Plan plan;
    plan.path = bench_.scratch.Write("few.svm", MeaninglessRows());
    plan.chunk_bytes = 2000;
    change(plan);
    StopEverywhereAndGoOn(bench_, plan);
  }
}

TEST_F(TrainerTest, GoesOnAsIfItHadNeverStoppedOverRatings) {
  for (const bool in_parts : {false, true})
    for (const bool held_out : {false, true}) {
      SCOPED_TRACE(Str(in_parts ? "in parts" : "all in memory", held_out ? ", with held-out ratings" : ""));
      Plan plan = Ratings(400);
      plan.train.most_ratings = in_parts ? 90 : 10'000;
      plan.train.hold_out.fraction = held_out ? 0.2 : 0;
      plan.train.epochs = in_parts ? 3 : 6;
      plan.train.patience = held_out ? 3 : 0;
      StopEverywhereAndGoOn(bench_, plan);
      EXPECT_GT(model::Rated::Unpack(bench_.Run(plan).rated).value().pairs().size(), 300u);  // few are rated twice
    }
}

TEST_F(TrainerTest, GoesOnAsIfItHadNeverStoppedWithOtherModels) {
  Plan batches = Ratings(300);
  batches.train.batch = 9;
  Plan machine = Ratings(300);
  machine.model.kind = "fm";
  machine.input.joint_ids = true;
  machine.optimizer.kind = "adagrad";
  Plan clusters = Sea(200);
  clusters.model.kind = "kmeans";
  clusters.model.loss = "squared";
  clusters.model.clusters = 3;
  clusters.train.batch = 4;
  for (const Plan& plan : {batches, machine, clusters}) {
    SCOPED_TRACE(plan.model.kind);
    StopEverywhereAndGoOn(bench_, plan);
  }
}

TEST_F(TrainerTest, GoesOnAsIfItHadNeverStoppedInTheMidstOfABlockOrAWindow) {
  for (const std::size_t i : {1, 2, 3, 4}) {
    const auto [name, change] = WaysOfTraining()[i];
    SCOPED_TRACE(name);
    Plan plan = Sea(90);
    change(plan);
    plan.clock_runs = true;
    plan.train.epochs = std::min(plan.train.epochs, 2);
    StopEverywhereAndGoOn(bench_, plan);
  }
  Plan sparse;
  sparse.path = bench_.scratch.Write("few.svm", MeaninglessRows());
  sparse.train.shuffle = true;
  sparse.train.batch = 9;
  sparse.clock_runs = true;
  StopEverywhereAndGoOn(bench_, sparse);
}

TEST_F(TrainerTest, GoesOnAsIfItHadNeverStoppedBetweenSlicesOfSingleRows) {
  Plan clusters = Sea(1500);
  clusters.model.kind = "kmeans";
  clusters.model.loss = "squared";
  clusters.model.clusters = 300;
  clusters.chunk_bytes = 1 << 16;
  clusters.clock_runs = true;
  StopEverywhereAndGoOn(bench_, clusters);
}

TEST_F(TrainerTest, GoesOnAsIfItHadNeverStoppedWithinAnUpdateOfANetwork) {
  Plan plan = Sea(60);
  plan.model.kind = "network";
  plan.model.features = 3;
  plan.model.network = ToToml(model::network::MakeZoo("mlp", {3}, 1, {.hidden = 4}).value());
  plan.optimizer.kind = "momentum";
  plan.optimizer.schedule.rate = 0.01;
  plan.train.batch = 16;
  plan.train.shuffle = true;
  plan.clock_runs = true;  // told between layers: the stop comes in the midst of an update
  StopEverywhereAndGoOn(bench_, plan);
}

TEST_F(TrainerTest, RunAgainAfterItsEndGivesTheSameWithoutTraining) {
  for (const bool ratings : {false, true}) {
    SCOPED_TRACE(ratings ? "ratings" : "sea");
    Plan plan = ratings ? Ratings(300) : Sea(300);
    plan.train.epochs = 3;
    plan.train.hold_out.fraction = 0.2;
    plan.train.patience = ratings ? 0 : 1;
    plan.train.checkpoint_path = bench_.scratch / Str("again", ratings);
    const BenchOutcome first = bench_.Run(plan), second = bench_.Run(plan);
    ExpectSame(second, first);
    EXPECT_EQ(second.told, 0);
  }
}

TEST_F(TrainerTest, AStopWithoutACheckpointIsSaid) {
  Plan plan = Sea(300);
  plan.stop_at = 2;
  const BenchOutcome outcome = bench_.Run(plan);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.code(), Code::kStopped);
  EXPECT_EQ(outcome.told, 2);
  EXPECT_EQ(bench_.scratch.Names(), std::vector<std::string>{"sea300"});  // nothing is left behind
}

TEST_F(TrainerTest, DivergenceHasItsOwnCodeAndSaysWhatToTry) {
  for (const std::uint64_t batch : {1, 7}) {
    Plan plan = Sea(300);
    plan.input.standardise = false;
    plan.input.task = data::Labels::Kind::kReal;
    plan.model.loss = "squared";
    plan.train.batch = batch;
    plan.optimizer.kind = "sgd";
    plan.optimizer.schedule.rate = 10;
    const BenchOutcome outcome = bench_.Run(plan);
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.code(), Code::kDiverged);
    EXPECT_NE(outcome.error->text.find(Str("try ", Option("rate"))), std::string::npos) << outcome.error->text;
  }
  Plan ratings = Ratings(300);
  ratings.optimizer.schedule.rate = 1e10;
  EXPECT_EQ(bench_.Run(ratings).code(), Code::kDiverged);
}

TEST_F(TrainerTest, NeverTrainsOnHeldOutRows) {
  // Each row has a feature of its own, so that its weight tells whether the row was trained on.
  std::string text;
  constexpr std::size_t kRows = 400;
  for (std::size_t row = 0; row < kRows; ++row) text += Str(row % 2 == 0 ? "+1 " : "-1 ", row + 1, ":1\n");
  for (const std::uint64_t batch : {1, 5})
    for (const bool shuffle : {false, true}) {
      SCOPED_TRACE(Str("batch ", batch, shuffle ? " shuffled" : ""));
      Plan plan;
      plan.path = bench_.scratch.Write("own.svm", text);
      plan.train.hold_out.fraction = 0.3;
      plan.train.batch = batch;
      plan.train.shuffle = shuffle;
      plan.train.epochs = 2;
      const BenchOutcome outcome = bench_.Run(plan);
      ASSERT_TRUE(outcome.ok()) << outcome.error->text;
      std::size_t held = 0;
      for (std::uint64_t row = 0; row < kRows; ++row) {
        data::Batch one;
        one.rows = 1;
        one.samples = &row;
        const bool holds = plan.train.hold_out.Holds(one, 0);
        held += holds;
        ASSERT_EQ(outcome.weights[0][row] == 0.0f, holds) << "row " << row;
      }
      EXPECT_NEAR(static_cast<double>(held), 0.3 * kRows, 40);
      EXPECT_EQ(outcome.report->held_out->rows(), held);
      EXPECT_EQ(outcome.report->rows, 2 * (kRows - held));
    }
}

TEST_F(TrainerTest, HoldsOutByTime) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += Str("u", i % 10, "::i", i % 7, "::", 1 + i % 5, "::", 1000 + i, "\n");
  Plan plan = Ratings(10);
  plan.path = bench_.scratch.Write("timed.dat", text);
  plan.train.hold_out.after_time = 1080;
  const BenchOutcome outcome = bench_.Run(plan);
  ASSERT_TRUE(outcome.ok()) << outcome.error->text;
  EXPECT_EQ(outcome.report->held_out->rows(), 20u);
  EXPECT_EQ(outcome.report->progressive.rows(), 80u);
  plan.train.hold_out.after_time = 5000;
  EXPECT_EQ(bench_.Run(plan).code(), Code::kInvalid);  // nothing to test on
}

TEST_F(TrainerTest, EarlyStoppingReturnsTheBestWeights) {
  Plan plan;
  plan.path = bench_.scratch.Write("few.svm", MeaninglessRows());
  plan.optimizer.schedule.rate = 0.5;
  plan.train.epochs = 30;
  plan.train.hold_out.fraction = 0.3;
  plan.train.patience = 3;
  const BenchOutcome outcome = bench_.Run(plan);
  ASSERT_TRUE(outcome.ok()) << outcome.error->text;
  EXPECT_TRUE(outcome.report->stopped_early);
  EXPECT_LT(outcome.report->epochs, 30);
  const auto& losses = outcome.report->held_out_losses;
  ASSERT_EQ(losses.size(), static_cast<std::size_t>(outcome.report->epochs));
  const auto best = std::min_element(losses.begin(), losses.end());
  EXPECT_EQ(outcome.report->held_out->loss(), *best);
  EXPECT_EQ(losses.end() - best, 1 + plan.train.patience);
  // The weights are those of a run that ends with the best epoch.
  plan.train.epochs = static_cast<int>(best - losses.begin()) + 1;
  EXPECT_EQ(bench_.Run(plan).weights, outcome.weights);
}

TEST_F(TrainerTest, AFullDiskWhileCheckpointingLeavesTheEarlierCheckpointUsable) {
  Plan plan = Sea(100);
  const BenchOutcome whole = bench_.Run(plan);
  plan.train.checkpoint_path = bench_.scratch / "run.ckpt";
  plan.train.checkpoint_seconds = 0;  // after every block
  for (int nth = 1;; ++nth) {
    SCOPED_TRACE(Str("operation ", nth));
    (void)bench_.files.Remove(plan.train.checkpoint_path);
    base::FaultyFiles faulty(bench_.files);
    faulty.FailAt(nth, true);
    const BenchOutcome failed = bench_.Run(plan, faulty);
    if (failed.ok()) {
      EXPECT_GT(nth, 20);
      break;
    }
    ASSERT_EQ(failed.code(), Code::kIo);
    ASSERT_NE(failed.error->text.find("No space left"), std::string::npos);
    ExpectSame(bench_.Run(plan), whole);
  }
}

TEST_F(TrainerTest, AFullDiskWhileCachingEndsInOneClearError) {
  Plan plan = Sea(300);
  plan.train.epochs = 2;
  plan.train.cache_path = bench_.scratch / "rows.cache";
  for (const int nth : {1, 2, 5, 20}) {
    SCOPED_TRACE(Str("operation ", nth));
    base::FaultyFiles faulty(bench_.files);
    faulty.FailAt(nth);
    const BenchOutcome failed = bench_.Run(plan, faulty);
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.code(), Code::kIo);
    EXPECT_EQ(bench_.scratch.Names(), std::vector<std::string>{"sea300"});
  }
}

TEST_F(TrainerTest, AFaultAfterACheckpointWasWrittenLeavesTheEarlierOne) {
  Plan plan = Sea(300);
  const BenchOutcome whole = bench_.Run(plan);
  plan.train.checkpoint_path = bench_.scratch / "run.ckpt";
  plan.train.checkpoint_seconds = 0;
  for (const char* const place : {"checkpoint.written", "checkpoint.save"}) {
    SCOPED_TRACE(place);
    (void)bench_.files.Remove(plan.train.checkpoint_path);
    ASSERT_TRUE(bench_.faults.Arm(Str(place, ":3:error")).ok());
    const BenchOutcome failed = bench_.Run(plan);
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error->text, Str("injected fault at ", place));
    ExpectSame(bench_.Run(plan), whole);
  }
}

TEST_F(TrainerTest, ChecksTheClockForTheNextCheckpoint) {
  Plan plan = Sea(300);
  plan.train.checkpoint_path = bench_.scratch / "run.ckpt";
  plan.train.checkpoint_seconds = 60;
  int seen = 0;
  plan.train.progress = [&](const Progress&) {
    seen += bench_.files.Exists(plan.train.checkpoint_path);
    bench_.clock.Advance(std::chrono::seconds(25));
  };
  const BenchOutcome outcome = bench_.Run(plan);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(seen, outcome.told - 3);  // written after the third block
}

TEST_F(TrainerTest, RefusesACheckpointThatIsDamagedOrOfAnotherRun) {
  Plan plan = Sea(300);
  plan.train.checkpoint_path = bench_.scratch / "run.ckpt";
  plan.train.fingerprint = "one";
  plan.stop_at = 3;
  ASSERT_EQ(bench_.Run(plan).code(), Code::kStopped);
  const std::string whole = bench_.scratch.Read("run.ckpt");
  plan.stop_at = 0;
  plan.train.fingerprint = "another";
  const BenchOutcome other = bench_.Run(plan);
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error->text.find("other settings"), std::string::npos) << other.error->text;
  EXPECT_NE(other.error->text.find(Option("fresh")), std::string::npos);
  plan.train.fingerprint = "one";
  base::Random random(1, "damage");
  for (int i = 0; i < 60; ++i) {
    std::string damaged = whole;
    if (i % 2 == 0)
      damaged.resize(random.Below(whole.size()));
    else
      damaged[random.Below(whole.size())] ^= static_cast<char>(1 << random.Below(8));
    bench_.scratch.Write("run.ckpt", damaged);
    const BenchOutcome outcome = bench_.Run(plan);
    ASSERT_TRUE(outcome.ok() || outcome.code() == Code::kCorrupt) << outcome.error->text;
  }
  bench_.scratch.Write("run.ckpt", whole);
  plan.train.checkpoint_path.clear();
  const BenchOutcome baseline = bench_.Run(plan);
  plan.train.checkpoint_path = bench_.scratch / "run.ckpt";
  ExpectSame(bench_.Run(plan), baseline);
}

TEST_F(TrainerTest, ALaterPassReadsTheCacheAndRemovesItAfterwards) {
  Plan plan = Sea(300);
  plan.train.epochs = 3;
  const BenchOutcome without = bench_.Run(plan);
  EXPECT_EQ(bench_.scratch.Names(), std::vector<std::string>{"sea300"});
  plan.train.cache_path = bench_.scratch / "rows.cache";
  ExpectSame(bench_.Run(plan), without);
  EXPECT_TRUE(bench_.files.Exists(plan.train.cache_path));
}

TEST_F(TrainerTest, ProgressTellsOfEveryBlockWithRisingRowsAndFraction) {
  Plan plan = Sea(300);
  plan.train.epochs = 2;
  std::uint64_t rows = 0;
  double fraction = 0;
  plan.train.progress = [&](const Progress& progress) {
    EXPECT_GT(progress.rows, rows);
    EXPECT_GT(progress.fraction.value(), fraction);
    EXPECT_EQ(progress.epochs, 2);
    EXPECT_TRUE(std::isfinite(progress.mean_loss));
    rows = progress.rows;
    fraction = *progress.fraction;
  };
  ASSERT_TRUE(bench_.Run(plan).ok());
  EXPECT_EQ(rows, 600u);
  EXPECT_DOUBLE_EQ(fraction, 1);
}

TEST_F(TrainerTest, AShuffledEpochInOneWindowStillLowersTheRateOnTheWay) {
  // With the rate falling to zero, a window as large as the epoch must not be trained on at the rate of its end.
  Plan plan = Sea(2000, 2000);
  plan.train.shuffle = true;
  plan.optimizer.schedule.kind = "linear";
  const BenchOutcome outcome = bench_.Run(plan);
  ASSERT_TRUE(outcome.ok());
  EXPECT_LT(*outcome.report->progressive.error_rate(), 0.18);
}

TEST_F(TrainerTest, KMeansLearnsFromAsManyRowsAtOnceAsItIsTold) {
  Plan plan = Sea(2000);
  plan.model.kind = "kmeans";
  plan.model.loss = "squared";
  plan.model.clusters = 4;
  const BenchOutcome one = bench_.Run(plan);
  plan.train.batch = 50;
  const BenchOutcome batches = bench_.Run(plan);
  ASSERT_TRUE(one.ok() && batches.ok());
  EXPECT_NE(one.weights, batches.weights);  // rows of a batch all see the same centroids
  EXPECT_NEAR(batches.report->progressive.loss() / one.report->progressive.loss(), 1, 0.1);
}

TEST_F(TrainerTest, ABatchComputedInPartsIsTheBatchButForBatchNormWhichSeesParts) {
  using model::network::Op;
  for (const bool normalised : {false, true}) {
    model::network::Graph graph({3});
    int x = graph.Dense(0, 8, "hidden");
    if (normalised) x = graph.Plain(Op::kBatchNorm, x, "norm");
    graph.AddHead(graph.Dense(graph.Relu(x), 1, "score"));
    Plan plan = Sea(600);
    plan.model.kind = "network";
    plan.model.network = ToToml(graph);
    plan.optimizer.kind = "sgd";
    plan.train.batch = 12;
    const BenchOutcome whole = bench_.Run(plan);
    plan.train.accumulate = 3;
    const BenchOutcome parts = bench_.Run(plan);
    ASSERT_TRUE(whole.ok() && parts.ok());
    const float apart = std::abs(whole.weights.back()[0] - parts.weights.back()[0]);
    if (normalised)
      EXPECT_GT(apart, 1e-4f);
    else
      EXPECT_LT(apart, 1e-5f);
  }
}

TEST_F(TrainerTest, LbfgsFindsABetterModelThanOnePassTheSameForAnyNumberOfThreads) {
  Plan plan = Sea(3000, 3000);
  const BenchOutcome one_pass = bench_.Run(plan);
  plan.by_lbfgs = true;
  plan.train.epochs = 20;
  const BenchOutcome one = bench_.Run(plan);
  ASSERT_TRUE(one.ok()) << one.error->text;
  EXPECT_LT(one.report->last_epoch.loss(), one_pass.report->progressive.loss());
  EXPECT_LT(*one.report->last_epoch.error_rate(), 0.12);
  plan.threads = 3;
  EXPECT_EQ(bench_.Run(plan).weights, one.weights);
  EXPECT_EQ(bench_.scratch.Names(), std::vector<std::string>{"sea3000"});
}

TEST_F(TrainerTest, EvaluateSaysOfTheTrainedModelWhatTheHeldOutRowsSaid) {
  Plan plan = Sea(2000, 2000);
  const BenchOutcome outcome = bench_.Run(plan);
  ASSERT_TRUE(outcome.ok());
  base::Log log(bench_.clock, [](std::string_view) {});
  base::InlineExecutor executor;
  const base::Env env{bench_.files, bench_.clock, log, executor, bench_.faults};
  data::Description description;
  data::ReaderOptions reading;
  reading.paths = {plan.path};
  const auto source = std::move(data::Reader::Open(env, reading, plan.input, description)).value();
  model::ModelConfig config = plan.model;
  config.dense = true;
  config.features = 3;
  const auto model = std::move(model::Model::Make(config)).value();
  optimize::HeapMemory memory;
  auto parameters = std::move(model->NewParameters(memory)).value();
  parameters.Scatter(0, outcome.weights[0]);
  parameters.Scatter(1, outcome.weights[1]);
  // Moments of the whole file, as the end of the first pass left them.
  ASSERT_TRUE(data::DriveInOrder(executor, *source, [&](data::Rows& rows) -> Result<void> {
                for (std::size_t r = 0; r < rows.size(); ++r) description.moments.Observe(&rows.dense[r * 3]);
                return {};
              }).ok());
  ASSERT_TRUE(source->Seek({}).ok());
  const auto evaluation = Evaluate(env, *model, parameters, description, *source);
  ASSERT_TRUE(evaluation.ok());
  EXPECT_EQ(evaluation.value().rows(), 2000u);
  EXPECT_LT(*evaluation.value().error_rate(), 0.13);
  EXPECT_GT(*evaluation.value().auc(), 0.85);
}

}  // namespace
}  // namespace freshet::train
