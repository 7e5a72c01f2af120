// Workers that gossip and come and go, in simulated worlds: every row is learned from once by those who are left, or somebody
// has heard of it from who is lost; all who end have the same model, as good as that which nothing disturbed.

#include <numeric>

#include "train/elastic_testing.h"

namespace freshet::train {
namespace {

using namespace std::chrono_literals;
using fabric::sim::Fault;

struct How {
  std::string gossip, neighbours;
};
const std::vector<How> kWays = {{"pairs", "random"},
                                {"push-sum", "exponential"},
                                {"walk", "random"},
                                {"pairs", "ring"},
                                {"push-sum", "0-1,1-2,2-3"}};

class ElasticGossips : public ElasticTraining {
 protected:
  static constexpr int kEpochs = 2;

  ElasticGossips() {
    plan_.path = bench_.Generate({.kind = "sea", .rows = 1280}, "more");
    plan_.strategy.kind = "gossip";
    plan_.strategy.every = 2;
    plan_.train.batch = 16;
    plan_.train.epochs = kEpochs;
    plan_.train.hold_out.fraction = 0.5;
  }
  std::vector<Ended> TrainBy(const How& how, const Run& run) {
    plan_.strategy.gossip = how.gossip;
    plan_.strategy.neighbours = how.neighbours;
    learned_.clear();
    Run watched = run;
    watched.learns = [&](World::Member& member, const data::Batch& rows) {
      if (member.dead()) return;
      for (std::size_t r = 0; r < rows.rows; ++r) {
        const auto* const values = reinterpret_cast<const char*>(rows.dense + r * rows.width);
        ++learned_[base::Hash64({values, rows.width * sizeof(float)})][{member.rank(), member.life()}];
      }
    };
    auto ends = Train(watched);
    Forget();
    return ends;
  }
  // Undisturbed, for what follows to be compared with.
  Ended Calm(const How& how, int size = 4) {
    auto ends = TrainBy(how, {.size = size});
    wanted_.clear();
    for (const auto& [row, times] : learned_)
      for (const auto& [who, count] : times) wanted_[row] += count;
    return std::move(ends[0]);
  }
  static Run After(const std::string& faults, int size = 4) {
    return {.size = size, .faults = fabric::sim::ParseFaults(faults, size).value()};
  }
  // Those who end have learned from each row at most once an epoch, and all together at least once.
  void CheckLedger(const std::vector<Ended>& ends) {
    EXPECT_EQ(learned_.size(), wanted_.size());
    for (const auto& [row, times] : learned_) {
      int by_all = 0, by_who_ends = 0;
      for (const auto& [who, count] : times) {
        by_all += count;
        const Ended& end = ends[static_cast<std::size_t>(who.first)];
        if (end.ran && end.outcome.ok() && end.came == (who.second > 0)) by_who_ends += count;
      }
      ASSERT_GE(by_all, wanted_[row]);
      ASSERT_LE(by_who_ends, wanted_[row]);
      again_ += by_all > wanted_[row] ? 1 : 0;
    }
  }
  // How many ended; the model of all who did is the same, and as good.
  std::size_t Check(const std::vector<Ended>& ends, const Ended& calm) {
    const Ended* one = nullptr;
    std::size_t ended = 0;
    for (const Ended& end : ends) {
      if (!end.ran) continue;
      if (!end.outcome.ok()) {
        EXPECT_TRUE(LeftOut(end)) << end.outcome.error->text;
        continue;
      }
      ++ended;
      if (one == nullptr) one = &end;
      EXPECT_EQ(end.outcome.weights, one->outcome.weights);
      EXPECT_EQ(end.outcome.report->rows, calm.outcome.report->rows);
      EXPECT_LT(LossOf(end), 1.02 * LossOf(calm));
      if (&end == one) off_.push_back(LossOf(end) / LossOf(calm) - 1);
    }
    if (one != nullptr) CheckLedger(ends);
    return ended;
  }
  static double LossOf(const Ended& end) { return end.outcome.report->held_out->loss(); }

  std::map<std::uint64_t, std::map<std::pair<int, int>, int>> learned_;  // how often, by row and by member and its life
  std::map<std::uint64_t, int> wanted_;                                  // as often as they should be
  std::uint64_t again_ = 0;                                              // rows
  std::vector<double> off_;  // by how much of the undisturbed loss those who ended are above it, by worlds
};

TEST_F(ElasticGossips, WhenNobodyGoesTheyAreAsGoodAsThoseOfAGroupThatMustNotLoseAny) {
  for (const How& how : kWays) {
    SCOPED_TRACE(Str(how.gossip, " ", how.neighbours));
    const auto plain = TrainBy(how, {.plain = true});
    const Ended calm = Calm(how);
    ASSERT_TRUE(calm.outcome.ok()) << calm.outcome.error->text;
    const auto elastic = TrainBy(how, {});
    EXPECT_EQ(Check(elastic, calm), 4u);
    EXPECT_NEAR(LossOf(elastic[0]), LossOf(plain[0]), 0.01 * LossOf(plain[0]));
  }
}

TEST_F(ElasticGossips, WhoeverIsKilledWheneverTheOthersEnd) {
  for (const How& how : kWays) {
    const Ended calm = Calm(how);
    ASSERT_TRUE(calm.outcome.ok()) << calm.outcome.error->text;
    for (int at = 5; at < 120; at += 29)
      for (const int rank : {0, 2}) {
        const std::string fault = Str("crash rank=", rank, " at=", at, "ms");
        SCOPED_TRACE(Str(how.gossip, " ", how.neighbours, ", ", fault));
        const auto ends = TrainBy(how, After(fault));
        EXPECT_EQ(Check(ends, calm), 3u);
        EXPECT_GT(ends[1].times.apart, 0);
        if (HasFailure()) return;
      }
  }
  EXPECT_GT(again_, 0u);
}

TEST_F(ElasticGossips, WhoComesBackIsGivenItsPartOfTheWork) {
  for (const How& how : kWays) {
    const Ended calm = Calm(how);
    for (const char* const faults :
         {"crash rank=1 at=20ms for=10ms", "crash rank=0 at=35ms for=5ms",
          "crash rank=3 at=20ms for=10ms; crash rank=0 at=60ms for=5ms; pause rank=1 at=80ms for=60ms",
          "crash rank=1 at=30ms for=15ms; crash rank=2 at=30ms for=15ms"}) {
      SCOPED_TRACE(Str(how.gossip, " ", how.neighbours, ", ", faults));
      const auto ends = TrainBy(how, After(faults));
      EXPECT_GE(Check(ends, calm), 3u);
      EXPECT_TRUE(
          std::any_of(ends.begin(), ends.end(), [](const Ended& end) { return end.came && end.times.rows > 0; }));
      if (HasFailure()) return;
    }
  }
}

// Nobody learns anything (a rate of next to nothing), and each begins with a number of its own: what two move by adds up to
// nothing, also when connections are lost and the group comes together anew while they do.
TEST_F(ElasticGossips, WhatPairsHaveTogetherStaysInWhicheverGenerationTheyAre) {
  plan_.optimizer.kind = "sgd";
  plan_.optimizer.schedule = {"constant", 1e-30};
  plan_.train.checkpoint_path.clear();
  plan_.train.epochs = 1;
  const auto mean_of = [&](const std::string& faults) {
    Run run = After(faults);
    run.begins = [](World::Member& member, optimize::Parameters& parameters) {
      for (float& value : parameters.Values(0)) value = static_cast<float>(member.rank());
    };
    const auto ends = TrainBy({"pairs", "random"}, run);
    EXPECT_TRUE(ends[1].ran && ends[1].outcome.ok());
    EXPECT_GT(ends[1].losses, 0u);
    return ends[1].outcome.weights[0][0];
  };
  for (int at = 8000; at < 8400; at += 15)
    EXPECT_NEAR(mean_of(Str("disconnect 1|2 at=", at, "us; disconnect 0|3 at=", at + 8000, "us")), 1.5, 1e-4);
}

// Worlds of 3 to 8 members and up to three faults, some of them while members recover from another.
TEST_F(ElasticGossips, WhateverHappensThoseWhoGoOnHaveLearnedTheSame) {
  std::map<std::pair<std::size_t, int>, Ended> undisturbed;  // by way and size
  const std::uint64_t first = NumberIn("FRESHET_SEED", 1);
  const std::uint64_t seeds = NumberIn("FRESHET_SEEDS", std::getenv("FRESHET_SEED") != nullptr ? 1 : 60);
  std::uint64_t finished = 0, changed = 0, came = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    base::Random random(seed, "elastic gossip");
    const std::size_t way = seed % kWays.size();
    const int size = 3 + static_cast<int>(random.Below(6));
    Ended& calm = undisturbed[{way, size}];
    if (!calm.ran) calm = Calm(kWays[way], size);
    const Drawn drawn = DrawFaults(seed, seed % 3 + 1, size, calm.at, 20ms, random);
    SCOPED_TRACE(Str("seed ", seed, ", ", kWays[way].gossip, " ", kWays[way].neighbours, ", ", size, " members, ",
                     drawn.text, "to see it again: FRESHET_SEED=", seed,
                     " train_test --gtest_filter='ElasticGossips.Whatever*'"));
    const auto ends = TrainBy(kWays[way], {.size = size, .seed = seed, .faults = drawn.faults});
    finished += Check(ends, calm) > 0 ? 1 : 0;
    for (const Ended& end : ends) {
      if (!end.ran) continue;
      EXPECT_LE(end.at, drawn.quiet + 10s);
      changed += end.losses > 0 ? 1 : 0;
      came += end.came ? 1 : 0;
    }
    if (HasFailure()) return;
  }
  ShowFaults(finished, seeds);
  const double mean = std::accumulate(off_.begin(), off_.end(), 0.0) / static_cast<double>(off_.size());
  std::printf("loss above the undisturbed by %.2f %% in the mean, by %.2f %% at most\n", 100 * mean,
              100 * *std::max_element(off_.begin(), off_.end()));
  EXPECT_LT(mean, 0.01);
  if (seeds >= 60) {
    EXPECT_GT(finished, seeds * 7 / 10);
    EXPECT_GT(changed, seeds / 2);
    EXPECT_GT(came, seeds / 20);
  }
}

}  // namespace
}  // namespace freshet::train
