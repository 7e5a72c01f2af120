// Who asks from outside has all workers of a parameter server go on in another synchrony: each row still counts once, and
// all end with the same model, whatever is wished when and by whom, and whoever is lost meanwhile.

#include "fabric/threads/threads_testing.h"
#include "strategy/server/panel.h"
#include "train/elastic_testing.h"

namespace freshet::train {
namespace {

using namespace std::chrono_literals;
using strategy::server::Panel;
using strategy::server::Synchrony;

const std::vector<std::string> kModes = {"bsp", "ssp:2", "asp:0.01", "bap", "ssp:5", "asp:0.1"};

class ChangeOfSynchrony : public ElasticTraining {
 protected:
  static constexpr int kMost = 8;
  ChangeOfSynchrony() {
    plan_.strategy.kind = "server";
    plan_.strategy.replicas = 3;
    plan_.train.batch = 16;
  }
  // As with a run that begins, nobody has wished for anything.
  void NewPanels() {
    for (auto& panel : panels_) panel = std::make_unique<Panel>();
  }
  Panel& PanelOf(int rank) { return *panels_[static_cast<std::size_t>(rank)]; }
  std::uint64_t Changes() const {
    std::uint64_t most = 0;
    for (const auto& panel : panels_) most = std::max(most, panel->Tell().changes);
    return most;
  }
  std::array<std::unique_ptr<Panel>, kMost> panels_;
};

// Of real threads; whatever they were in, they go through all.
TEST_F(ChangeOfSynchrony, IsMadeByAllTogetherAndEachRowCountsOnce) {
  for (const bool whole : {true, false})
    for (const int servers : {0, 1})
      for (const std::string& first : {std::string("bsp"), std::string("bap")}) {
        if (servers > 0 && !whole) continue;  // their rows would be lost
        SCOPED_TRACE(Str(first, whole ? " of all rows, " : " of their own, ", servers, " servers"));
        NewPanels();
        Plan plan = plan_;
        plan.train.checkpoint_path.clear();
        plan.train.epochs = 1;
        plan.strategy.whole = whole;
        plan.strategy.servers = servers;
        plan.strategy.synchrony = first;
        plan.panel = [&](int rank) { return &PanelOf(rank); };
        std::atomic<int> steps = 0;
        plan.computing = [&] {
          const int step = ++steps;
          if (step % 15 == 0) {
            const auto wished =
                PanelOf((step / 15 + 2) % 3).Wish(kModes[static_cast<std::size_t>(step / 15) % kModes.size()]);
            EXPECT_TRUE(wished.ok()) << wished.error().text;
          }
        };
        std::vector<BenchOutcome> ends(static_cast<std::size_t>(3 + servers));
        fabric::RunMembers(3 + servers, [&](fabric::Fabric& fabric) {
          ends[static_cast<std::size_t>(fabric.rank())] = bench_.RunAs(fabric, plan);
        });
        for (const BenchOutcome& end : ends) {
          ASSERT_TRUE(end.ok()) << end.error->text;
          EXPECT_EQ(end.weights, ends[0].weights);
        }
        EXPECT_EQ(ends[0].report->progressive.rows(), 480u);  // of all
        EXPECT_GE(Changes(), 1u);  // where nobody waits, who is asked last may have no more steps to make
        for (int rank = 0; rank < 3 + servers; ++rank) {
          EXPECT_EQ(PanelOf(rank).Tell().now, PanelOf(0).Tell().now);
          EXPECT_EQ(PanelOf(rank).Tell().changes, Changes());
        }
        if (HasFailure()) return;
      }
}

TEST_F(ChangeOfSynchrony, IsRememberedByACheckpoint) {
  for (const std::string& first : {std::string("bsp"), std::string("bap")})
    for (const char* const to : {"ssp:2", "bap", "bsp"}) {
      if (first == to) continue;
      SCOPED_TRACE(Str(first, " to ", to));
      Plan plan = plan_;
      plan.strategy.synchrony = first;
      plan.panel = [&](int rank) { return &PanelOf(rank); };
      plan.clock_runs = true;
      plan.train.checkpoint_seconds = 10'000;
      const auto together = [&] {
        NewPanels();
        std::vector<BenchOutcome> ends(3);
        fabric::RunMembers(3, [&](fabric::Fabric& fabric) {
          ends[static_cast<std::size_t>(fabric.rank())] = bench_.RunAs(fabric, plan);
        });
        return ends[0];
      };
      std::atomic<int> steps = 0;
      plan.computing = [&] {
        if (++steps == 9) EXPECT_TRUE(PanelOf(0).Wish(to).ok());  // who stops later sees it first
      };
      plan.stop_at = 25;
      const BenchOutcome stopped = together();
      ASSERT_FALSE(stopped.ok());
      ASSERT_EQ(stopped.code(), Code::kStopped) << stopped.error->text;
      EXPECT_EQ(PanelOf(0).Tell().now->ToText(), to);
      plan.stop_at = 0;
      plan.computing = [] {};
      const BenchOutcome resumed = together();
      ASSERT_TRUE(resumed.ok()) << resumed.error->text;
      EXPECT_EQ(PanelOf(2).Tell().now->ToText(), to);
      EXPECT_EQ(resumed.report->rows, 960u);
      Forget();
    }
}

TEST_F(ChangeOfSynchrony, IsRefusedWhereItCannotBe) {
  Panel panel;
  EXPECT_NE(panel.Wish("bap").error().text.find("has no synchrony"), std::string::npos);
  NewPanels();
  plan_.strategy.synchrony = "ssp:3";
  plan_.strategy.fetch_every = 4;
  Run run{.size = 3};
  run.panel = [&](int rank) { return &PanelOf(rank); };
  ASSERT_TRUE(Train(run)[0].outcome.ok());
  EXPECT_NE(PanelOf(0).Wish("ssp:2").error().text.find("fetch-every"), std::string::npos);
  EXPECT_NE(PanelOf(0).Wish("tap").error().text.find("expected bsp"), std::string::npos);
  EXPECT_TRUE(PanelOf(0).Wish("bap").ok());
  EXPECT_TRUE(PanelOf(0).Wish("ssp:3").ok());  // as it is: nothing is wished any more
  EXPECT_FALSE(PanelOf(0).wished());
}

// In simulated worlds, of members who may be lost and of those who must not be.
TEST_F(ChangeOfSynchrony, WhateverIsWishedWhenAndWhoeverIsLostThoseWhoGoOnHaveLearnedTheSame) {
  const std::uint64_t first = NumberIn("FRESHET_SEED", 1);
  const std::uint64_t seeds = NumberIn("FRESHET_SEEDS", std::getenv("FRESHET_SEED") != nullptr ? 1 : 100);
  plan_.strategy.synchrony = "bsp";
  const Ended calm = Train(Run{.size = 4})[0];
  Forget();
  std::uint64_t changes = 0, finished = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    base::Random random(seed, "changes");
    NewPanels();
    Run run{.size = 2 + static_cast<int>(random.Below(5)), .seed = seed};
    run.plain = seed % 3 == 0;
    plan_.strategy.synchrony = kModes[random.Below(kModes.size())];
    std::string told;
    for (std::uint64_t f = 0; !run.plain && f < seed % 3; ++f) {
      run.faults.push_back(fabric::sim::DrawFault({Fault::Kind::kCrash, Fault::Kind::kPause, Fault::Kind::kSlow},
                                                  seed * 10 + f, run.size, calm.at));
      if (run.faults.back().kind == Fault::Kind::kCrash && random.Below(2) == 0) run.faults.back().lasts = 20ms;
      told += run.faults.back().ToText() + "; ";
    }
    run.panel = [&](int rank) { return &PanelOf(rank); };
    run.computes = [&](int rank) {
      if (random.Below(25) == 0) (void)PanelOf(rank).Wish(kModes[random.Below(kModes.size())]);
      return base::Clock::Duration(1ms);
    };
    SCOPED_TRACE(Str("seed ", seed, run.plain ? ", plain, " : ", ", run.size, " members from ",
                     plan_.strategy.synchrony, ", ", told, "to see it again: FRESHET_SEED=", seed,
                     " train_test --gtest_filter='ChangeOfSynchrony.Whatever*'"));
    const auto ends = Train(run);
    const Ended* one = nullptr;
    for (const Ended& end : ends) {
      if (!end.ran) continue;
      if (!end.outcome.ok()) {
        const bool draft = end.outcome.error->text.find(".draft") != std::string::npos;  // another has saved meanwhile
        EXPECT_TRUE(!run.plain && (end.outcome.code() == Code::kPeerLost || draft)) << end.outcome.error->text;
        continue;
      }
      if (one == nullptr) one = &end;
      EXPECT_EQ(end.outcome.weights, one->outcome.weights);
      EXPECT_EQ(end.outcome.report->rows, calm.outcome.report->rows);
      EXPECT_LT(Distance(end.outcome, calm.outcome), 0.4);
    }
    finished += one != nullptr ? 1 : 0;
    changes += Changes();
    Forget();
    if (HasFailure()) return;
  }
  std::printf("%llu of %llu finished, %llu changes\n", static_cast<unsigned long long>(finished),
              static_cast<unsigned long long>(seeds), static_cast<unsigned long long>(changes));
  if (seeds >= 50) {
    EXPECT_GT(finished, seeds * 8 / 10);
    EXPECT_GT(changes, seeds);
  }
}

}  // namespace
}  // namespace freshet::train
