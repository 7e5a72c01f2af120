// Workers with a parameter server whose members come and go, in simulated worlds: nothing that was acknowledged is lost,
// every row counts once, and all who end have the same model, as good as that which nothing disturbed.

#include "train/elastic_testing.h"

namespace freshet::train {
namespace {

using namespace std::chrono_literals;
using fabric::sim::Fault;

class ElasticServers : public ElasticTraining {
 protected:
  ElasticServers() {
    plan_.strategy.kind = "server";
    plan_.train.batch = 16;
  }
  std::vector<Ended> TrainBy(const std::string& synchrony, const std::string& faults, int size = 4,
                             std::uint64_t seed = 1) {
    plan_.strategy.synchrony = synchrony;
    learned_from_.clear();
    Run run{.size = size, .seed = seed, .faults = fabric::sim::ParseFaults(faults, size).value()};
    run.learns = [&](World::Member& member, const data::Batch& rows) { learned_from_[member.rank()] += rows.rows; };
    auto ends = Train(run);
    Forget();
    return ends;
  }
  // How many ended; the model of all who did is the same, and as good.
  std::size_t Check(const std::vector<Ended>& ends, const Ended& calm, const std::string& synchrony) {
    const Ended* one = nullptr;
    std::size_t ended = 0;
    for (const Ended& end : ends) {
      if (!end.ran) continue;
      if (!end.outcome.ok()) {
        EXPECT_EQ(end.outcome.code(), Code::kPeerLost) << end.outcome.error->text;
        continue;
      }
      ++ended;
      if (one == nullptr) one = &end;
      EXPECT_EQ(end.outcome.weights, one->outcome.weights);
      EXPECT_EQ(end.outcome.report->rows, calm.outcome.report->rows);
      EXPECT_LT(Distance(end.outcome, calm.outcome), synchrony == "bsp" ? 0.02 : 0.2);
    }
    return ended;
  }

  std::map<int, std::uint64_t> learned_from_;  // rows, by where a member stood first; each of its lives adds up
};

TEST_F(ElasticServers, WhenNobodyGoesTheyAreAsThoseOfAGroupThatMustNotLoseAny) {
  for (const std::string synchrony : {"bsp", "ssp:2", "bap", "asp:0.01"}) {
    SCOPED_TRACE(synchrony);
    plan_.strategy.synchrony = synchrony;
    const auto plain = Train(Run{.plain = true});
    Forget();
    const auto elastic = TrainBy(synchrony, "");
    for (const Ended& end : elastic) ASSERT_TRUE(end.ran && end.outcome.ok()) << end.outcome.error->text;
    EXPECT_EQ(Check(elastic, plain[0], synchrony), 4u);
    if (synchrony == "bsp") EXPECT_LT(Distance(elastic[0].outcome, plain[0].outcome), 1e-5);
  }
}

TEST_F(ElasticServers, WhoeverIsKilledWheneverTheOthersEnd) {
  for (const std::string synchrony : {"bsp", "ssp:2", "bap", "asp:0.01"}) {
    const auto calm = TrainBy(synchrony, "");
    ASSERT_TRUE(calm[0].outcome.ok()) << calm[0].outcome.error->text;
    for (int at = 5; at < 100; at += 7)
      for (const int rank : {0, 2}) {
        const std::string fault = Str("crash rank=", rank, " at=", at, "ms");
        SCOPED_TRACE(Str(synchrony, ", ", fault));
        EXPECT_EQ(Check(TrainBy(synchrony, fault), calm[0], synchrony), 3u);
        if (HasFailure()) return;
      }
  }
}

TEST_F(ElasticServers, WhoComesBackIsGivenItsPartOfTheWork) {
  for (const std::string synchrony : {"bsp", "ssp:2", "bap", "asp:0.01"}) {
    const auto calm = TrainBy(synchrony, "");
    for (const char* const faults :
         {"crash rank=1 at=20ms for=10ms", "crash rank=0 at=35ms for=5ms",
          "crash rank=3 at=20ms for=10ms; crash rank=0 at=60ms for=5ms; pause rank=1 at=80ms for=60ms"}) {
      SCOPED_TRACE(Str(synchrony, ", ", faults));
      const auto ends = TrainBy(synchrony, faults);
      EXPECT_GE(Check(ends, calm[0], synchrony), 3u);
      EXPECT_TRUE(std::any_of(ends.begin(), ends.end(), [](const Ended& end) { return end.came; }));
      if (HasFailure()) return;
    }
  }
}

TEST_F(ElasticServers, WhoeverIsLostWhileAnotherComesTheOthersEnd) {
  for (const std::string synchrony : {"bsp", "asp:0.01"}) {
    const auto calm = TrainBy(synchrony, "");
    for (int at = 35'000; at < 37'000; at += 20) {
      const std::string faults = Str("crash rank=0 at=20ms for=5ms; crash rank=2 at=", at, "us");
      SCOPED_TRACE(Str(synchrony, ", ", faults));
      EXPECT_GE(Check(TrainBy(synchrony, faults), calm[0], synchrony), 2u);
      if (HasFailure()) return;
    }
  }
}

// Of six, the last two have no rows.
TEST_F(ElasticServers, ServersOfTheirOwnLearnWhatWorkersThatServeDo) {
  plan_.strategy.servers = 2;
  for (const std::string synchrony : {"bsp", "ssp:2", "bap", "asp:0.01"}) {
    SCOPED_TRACE(synchrony);
    plan_.strategy.synchrony = synchrony;
    const auto plain = Train(Run{.size = 6, .plain = true});
    Forget();
    const auto elastic = TrainBy(synchrony, "", 6);
    for (const Ended& end : elastic) ASSERT_TRUE(end.ran && end.outcome.ok()) << end.outcome.error->text;
    EXPECT_EQ(Check(elastic, plain[0], synchrony), 6u);
    if (synchrony == "bsp") EXPECT_LT(Distance(elastic[0].outcome, plain[0].outcome), 1e-5);
    for (const int rank : {4, 5}) EXPECT_EQ(learned_from_[rank], 0u);
  }
}

// A worker, or a server whose ranges go on with the other, or with a worker when it was the only one.
TEST_F(ElasticServers, WhoeverIsKilledWhereSomeOnlyServeTheOthersEnd) {
  for (const std::string synchrony : {"bsp", "ssp:2", "bap", "asp:0.01"})
    for (const int servers : {1, 2}) {
      plan_.strategy.servers = servers;
      const auto calm = TrainBy(synchrony, "", 5);
      ASSERT_TRUE(calm[0].outcome.ok()) << calm[0].outcome.error->text;
      for (int at = 5; at < 100; at += 9)
        for (const int rank : {0, 2, 4}) {
          const std::string fault = Str("crash rank=", rank, " at=", at, "ms");
          SCOPED_TRACE(Str(synchrony, ", ", servers, " servers, ", fault));
          EXPECT_EQ(Check(TrainBy(synchrony, fault, 5), calm[0], synchrony), 4u);
          if (HasFailure()) return;
        }
    }
}

TEST_F(ElasticServers, WhoComesServesWhereServersAreMissing) {
  plan_.strategy.servers = 2;
  for (const std::string synchrony : {"bsp", "ssp:2", "bap", "asp:0.01"}) {
    const auto calm = TrainBy(synchrony, "", 5);
    for (const char* const faults :
         {"crash rank=4 at=20ms for=10ms", "crash rank=3 at=20ms for=10ms; crash rank=4 at=60ms for=5ms",
          "crash rank=0 at=35ms for=5ms", "crash rank=4 at=20ms for=10ms; crash rank=0 at=60ms for=5ms"}) {
      SCOPED_TRACE(Str(synchrony, ", ", faults));
      const auto ends = TrainBy(synchrony, faults, 5);
      EXPECT_EQ(Check(ends, calm[0], synchrony), 5u);
      EXPECT_TRUE(std::any_of(ends.begin(), ends.end(), [](const Ended& end) { return end.came; }));
      for (const int rank : {0, 3, 4}) {
        const Ended& end = ends[static_cast<std::size_t>(rank)];
        if (end.came) EXPECT_EQ(learned_from_[rank] > 0, rank == 0) << rank;
      }
      if (HasFailure()) return;
    }
  }
}

TEST_F(ElasticServers, WithoutAnybodyWhoReadsRowsItIsTheEnd) {
  plan_.strategy.servers = 2;
  for (const Ended& end : TrainBy("bap", "crash rank=0 at=12ms", 3)) {
    if (!end.ran) continue;
    ASSERT_FALSE(end.outcome.ok());
    EXPECT_EQ(end.outcome.code(), Code::kPeerLost);
    EXPECT_NE(end.outcome.error->text.find("all who read rows are lost"), std::string::npos) << end.outcome.error->text;
  }
}

// With as many copies as members that go at a time, all are lost: that is said, and nobody goes on with a part made new.
TEST_F(ElasticServers, WithOneCopyALostShardIsTheEnd) {
  plan_.strategy.replicas = 1;
  for (const Ended& end : TrainBy("ssp:1", "crash rank=2 at=12ms")) {
    if (!end.ran) continue;
    ASSERT_FALSE(end.outcome.ok());
    EXPECT_EQ(end.outcome.code(), Code::kPeerLost);
    EXPECT_NE(end.outcome.error->text.find("lost with all who had it"), std::string::npos) << end.outcome.error->text;
  }
}

// Worlds of 3 to 8 members and up to three faults, some of them while members recover from another. In two worlds of five
// there are servers of their own.
TEST_F(ElasticServers, WhateverHappensThoseWhoGoOnHaveLearnedTheSame) {
  const std::vector<std::string> modes = {"bsp", "ssp:2", "bap", "asp:0.01"};
  std::map<std::string, Ended> calm;
  for (const std::string& mode : modes) calm[mode] = TrainBy(mode, "", 5)[0];
  const std::uint64_t first = NumberIn("FRESHET_SEED", 1);
  const std::uint64_t seeds = NumberIn("FRESHET_SEEDS", std::getenv("FRESHET_SEED") != nullptr ? 1 : 200);
  std::uint64_t finished = 0, changed = 0, came = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    base::Random random(seed, "elastic servers");
    const std::string& mode = modes[seed % 4];
    const int size = 3 + static_cast<int>(random.Below(6));
    plan_.strategy.synchrony = mode;
    plan_.strategy.replicas = seed % 3 == 0 ? 3 : 2;
    plan_.strategy.servers = seed % 5 < 2 ? std::min(static_cast<int>(seed % 5) + 1, size - 2) : 0;
    const Drawn drawn = DrawFaults(seed, seed % 3 + 1, size, calm[mode].at, 20ms, random);
    SCOPED_TRACE(Str("seed ", seed, ", ", mode, ", ", size, " members, ", plan_.strategy.servers, " servers, ",
                     drawn.text, "to see it again: FRESHET_SEED=", seed,
                     " train_test --gtest_filter='ElasticServers.Whatever*'"));
    const auto ends = Train(size, seed, drawn.faults);
    const Ended* one = nullptr;
    for (const Ended& end : ends) {
      if (!end.ran) continue;
      EXPECT_LE(end.at, drawn.quiet + 10s);
      if (!end.outcome.ok()) {
        EXPECT_TRUE(LeftOut(end)) << end.outcome.error->text;
        continue;
      }
      if (one == nullptr) one = &end;
      EXPECT_EQ(end.outcome.weights, one->outcome.weights);
      EXPECT_LT(Distance(end.outcome, calm[mode].outcome), mode == "bsp" ? 0.02 : 0.3);
      EXPECT_EQ(end.outcome.report->rows, calm[mode].outcome.report->rows);  // each counted once
      changed += end.losses > 0 ? 1 : 0;
      came += end.came ? 1 : 0;
    }
    finished += one != nullptr ? 1 : 0;
    Forget();
    if (HasFailure()) return;
  }
  ShowFaults(finished, seeds);
  if (seeds >= 100) {
    EXPECT_GT(finished, seeds * 7 / 10);
    EXPECT_GT(changed, seeds / 2);
    EXPECT_GT(came, seeds / 20);
  }
}

}  // namespace
}  // namespace freshet::train
