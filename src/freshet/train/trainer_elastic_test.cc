// Training in a group that outlives its members, in simulated worlds: whoever dies, the others end with the model that
// nothing would have disturbed, but for roundings, and all of them with the same.

#include "train/elastic_testing.h"

namespace freshet::train {
namespace {

using namespace std::chrono_literals;
using fabric::sim::Fault;
using Kind = Fault::Kind;

TEST_F(ElasticTraining, TheOthersEndWithTheModelThatNothingDisturbed) {
  const auto undisturbed = Train(4, 1, {});
  Forget();
  for (const Ended& end : undisturbed) ASSERT_TRUE(end.outcome.ok()) << end.outcome.error->text;
  const auto ends = Train(4, 1, fabric::sim::ParseFaults("crash rank=0 at=40ms; crash rank=2 at=90ms", 4).value());
  for (const std::size_t rank : {1, 3}) {
    ASSERT_TRUE(ends[rank].ran && ends[rank].outcome.ok());
    EXPECT_EQ(ends[rank].outcome.weights, ends[1].outcome.weights);
    EXPECT_LT(Distance(ends[rank].outcome, undisturbed[0].outcome), 1e-5);
    EXPECT_GE(ends[rank].losses, 2u);
  }
  EXPECT_FALSE(ends[0].ran || ends[2].ran);
}

TEST_F(ElasticTraining, WhoComesBackGoesOnWithTheOthersAndEndsWithTheirModel) {
  const auto undisturbed = Train(4, 1, {});
  Forget();
  const auto ends = Train(4, 1, fabric::sim::ParseFaults("crash rank=1 at=40ms for=20ms", 4).value());
  for (const Ended& end : ends) {
    ASSERT_TRUE(end.ran && end.outcome.ok()) << (end.outcome.error ? end.outcome.error->text : "did not run");
    EXPECT_EQ(end.outcome.weights, ends[0].outcome.weights);
    EXPECT_EQ(end.outcome.report->rows, undisturbed[0].outcome.report->rows);
    EXPECT_LT(Distance(end.outcome, undisturbed[0].outcome), 1e-5);
  }
  EXPECT_EQ(ends[0].losses, 2u);  // one went, and one came
}

TEST_F(ElasticTraining, ExactSumsEndWithTheBitsOfWhatNothingDisturbed) {
  plan_.strategy.exact = true;
  const auto undisturbed = Train(4, 1, {});
  Forget();
  const auto by_three = Train(3, 2, {});
  EXPECT_EQ(by_three[0].outcome.weights, undisturbed[0].outcome.weights);
  Forget();
  for (const char* const plan :
       {"crash rank=0 at=40ms; crash rank=2 at=90ms", "crash rank=1 at=40ms for=20ms",
        "crash rank=3 at=20ms for=30ms; crash rank=0 at=70ms for=5ms; pause rank=1 at=99ms for=60ms"}) {
    SCOPED_TRACE(plan);
    const auto ends = Train(4, 1, fabric::sim::ParseFaults(plan, 4).value());
    std::size_t ended = 0;
    for (const Ended& end : ends) {
      if (!end.ran || !end.outcome.ok()) continue;
      ++ended;
      EXPECT_EQ(end.outcome.weights, undisturbed[0].outcome.weights);
      EXPECT_EQ(end.outcome.report->rows, undisturbed[0].outcome.report->rows);
    }
    EXPECT_GE(ended, 2u);
    Forget();
  }
}

TEST_F(ElasticTraining, WhateverHappensThoseWhoGoOnHaveLearnedTheSame) {
  const auto undisturbed = Train(5, 1, {});
  Forget();
  ASSERT_TRUE(undisturbed[0].outcome.ok()) << undisturbed[0].outcome.error->text;
  const std::vector<Kind> kinds = {Kind::kCrash,     Kind::kPowerOff, Kind::kPause,
                                   Kind::kPartition, Kind::kSlow,     Kind::kDisconnect};
  const std::uint64_t first = NumberIn("FRESHET_SEED", 1);
  const std::uint64_t seeds = std::getenv("FRESHET_SEED") != nullptr ? 1 : NumberIn("FRESHET_SEEDS", 100);
  std::uint64_t finished = 0, changed = 0, came = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    std::vector<Fault> faults;
    std::string plan;
    for (std::uint64_t i = 0; i <= seed % 3; ++i) {
      faults.push_back(fabric::sim::DrawFault(kinds, seed * 10 + i, 5, undisturbed[0].at));
      if (faults.back().kind == Kind::kPartition && faults.back().lasts == Fault::kForEver) faults.back().lasts = 100ms;
      // Half of those who crash are started again.
      if (faults.back().kind == Kind::kCrash && seed % 2 == 0) faults.back().lasts = 20ms + (seed % 7) * 5ms;
      plan += faults.back().ToText() + "; ";
    }
    SCOPED_TRACE(Str("seed ", seed, ", ", plan, "to see it again: FRESHET_SEED=", seed,
                     " train_test --gtest_filter='ElasticTraining.Whatever*'"));
    const auto ends = Train(5, seed, faults);
    const BenchOutcome* one = nullptr;
    for (const Ended& end : ends) {
      if (!end.ran) continue;
      if (!end.outcome.ok()) {
        // Drafts of checkpoints have the numbers of processes, and here all are one: who was left out while it wrote may
        // find its draft gone.
        const bool draft = end.outcome.error->text.find(".draft") != std::string::npos;
        EXPECT_TRUE(end.outcome.code() == Code::kPeerLost || draft) << end.outcome.error->text;
        continue;
      }
      if (one == nullptr) one = &end.outcome;
      EXPECT_EQ(end.outcome.weights, one->weights);
      EXPECT_LT(Distance(end.outcome, undisturbed[0].outcome), 1e-5);
      changed += end.losses > 0 ? 1 : 0;
      came += end.came ? 1 : 0;
      EXPECT_EQ(end.outcome.report->rows, undisturbed[0].outcome.report->rows);  // each counted once
    }
    finished += one != nullptr ? 1 : 0;
    Forget();
    if (HasFailure()) return;
  }
  if (seeds >= 100) {
    EXPECT_GT(finished, seeds * 7 / 10);
    EXPECT_GT(changed, seeds / 2);
    EXPECT_GT(came, seeds / 10);
  }
}

}  // namespace
}  // namespace freshet::train
