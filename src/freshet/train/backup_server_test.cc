// Bulk workers of a parameter server who do not wait for the slowest, in simulated worlds: whoever is slow when, and whatever
// is saved or ordered meanwhile, each row counts once and all end with the same model.

#include "train/elastic_testing.h"

namespace freshet::train {
namespace {

using namespace std::chrono_literals;

class BackupTraining : public ElasticTraining {
 protected:
  BackupTraining() {
    plan_.strategy.kind = "server";
    plan_.train.batch = 16;
  }
};

TEST_F(BackupTraining, WhoeverIsSlowWhenAllEndWithWhatTheWholeBatchMakes) {
  const std::uint64_t first = NumberIn("FRESHET_SEED", 1);
  const std::uint64_t seeds = NumberIn("FRESHET_SEEDS", std::getenv("FRESHET_SEED") != nullptr ? 1 : 60);
  const Ended calm = Train(Run{.size = 1, .plain = true})[0];
  ASSERT_TRUE(calm.outcome.ok());
  Forget();
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    base::Random random(seed, "backup");
    const int workers = 2 + static_cast<int>(random.Below(4));
    plan_.strategy.backup = 1 + static_cast<int>(random.Below(3));
    plan_.strategy.servers = static_cast<int>(random.Below(3));
    plan_.train.checkpoint_seconds = 0.01 * static_cast<double>(1 + random.Below(20));
    Run run{.size = workers + plan_.strategy.servers, .seed = seed, .plain = true, .heartbeat = 1h};
    // One or none is always slow, all are now and then, for a while or a long time.
    const int slow = static_cast<int>(random.Below(static_cast<std::uint64_t>(workers) + 1));
    const std::uint64_t often = 2 + random.Below(20);
    run.computes = [&](int rank) {
      base::Clock::Duration takes = std::chrono::microseconds(900 + random.Below(200));
      if (rank == slow) takes *= 4;
      if (random.Below(often) == 0) takes *= static_cast<int>(1 + random.Below(30));
      return takes;
    };
    SCOPED_TRACE(Str("seed ", seed, ", ", workers, " workers, ", plan_.strategy.servers, " servers, ",
                     plan_.strategy.backup, " not waited for; to see it again: FRESHET_SEED=", seed,
                     " train_test --gtest_filter='BackupTraining.Whoever*'"));
    const auto ends = Train(run);
    for (const Ended& end : ends) {
      ASSERT_TRUE(end.outcome.ok()) << end.outcome.error->text;
      EXPECT_EQ(end.outcome.weights, ends[0].outcome.weights);
      EXPECT_LT(Distance(end.outcome, calm.outcome), 1e-4);
    }
    EXPECT_EQ(ends[0].outcome.report->rows, calm.outcome.report->rows);
    EXPECT_EQ(ends[0].outcome.report->progressive.rows(), calm.outcome.report->progressive.rows());
    EXPECT_NEAR(ends[0].outcome.report->last_epoch.loss(), calm.outcome.report->last_epoch.loss(), 0.01);
    Forget();
    if (HasFailure()) return;
  }
}

// Rank 0 orders what all do, also where it is late in every step.
TEST_F(BackupTraining, GoOnWithEachRowOnceWhenTheyWereStoppedWhoeverIsSlow) {
  const Ended calm = Train(Run{.size = 1, .plain = true})[0];
  ASSERT_TRUE(calm.outcome.ok());
  Forget();
  plan_.strategy.backup = 1;
  for (const int slow : {0, 1, 3})
    for (const int stop : {1, 4, 9}) {
      SCOPED_TRACE(Str("rank ", slow, ", after ", stop));
      Run run{.size = 4, .plain = true, .heartbeat = 1h};
      run.computes = [&](int rank) { return base::Clock::Duration(rank == slow ? 7ms : 1ms); };
      plan_.train.checkpoint_seconds = 0.01;
      plan_.stop_at = stop;
      const auto stopped = Train(run);
      for (const Ended& end : stopped) {
        ASSERT_FALSE(end.outcome.ok());
        ASSERT_EQ(end.outcome.code(), Code::kStopped) << end.outcome.error->text;
      }
      plan_.stop_at = 0;
      const auto resumed = Train(run);
      for (const Ended& end : resumed) {
        ASSERT_TRUE(end.outcome.ok()) << end.outcome.error->text;
        EXPECT_EQ(end.outcome.weights, resumed[0].outcome.weights);
        EXPECT_LT(Distance(end.outcome, calm.outcome), 1e-4);
      }
      EXPECT_EQ(resumed[0].outcome.report->rows, calm.outcome.report->rows);
      EXPECT_EQ(resumed[0].outcome.report->progressive.rows(), calm.outcome.report->progressive.rows());
      Forget();
    }
}

}  // namespace
}  // namespace freshet::train
