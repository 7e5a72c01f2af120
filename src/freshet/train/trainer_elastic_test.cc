// Training in a group that outlives its members, in simulated worlds: whoever dies, the others end with the model that
// nothing would have disturbed, but for roundings, and all of them with the same.

#include <cmath>
#include <cstdlib>

#include "fabric/sim/world.h"
#include "strategy/elastic.h"
#include "train/bench_testing.h"

namespace freshet::train {
namespace {

using namespace std::chrono_literals;
using fabric::ElasticGroup;
using fabric::Envelope;
using fabric::MemberId;
using fabric::Roster;
using fabric::Seat;
using fabric::Testimony;
using fabric::sim::Fault;
using fabric::sim::World;
using Kind = Fault::Kind;

struct Ended {
  bool ran = false, came = false;
  BenchOutcome outcome;
  std::uint64_t losses = 0;
  base::Clock::Duration at{0};
};

class ElasticTraining : public testing::Test {
 protected:
  ElasticTraining() { plan_ = PlanForWorlds(bench_); }

  std::vector<Ended> Train(int size, std::uint64_t seed, std::vector<Fault> faults) {
    fabric::sim::WorldOptions options{.size = size, .seed = seed, .faults = std::move(faults)};
    options.fabric.heartbeat = 5ms;
    options.fabric.heartbeat_misses = 6;
    World world(options);
    Roster first{.generation = 1, .seats = {}};
    for (int rank = 0; rank < size; ++rank)
      first.seats.push_back({.id = static_cast<MemberId>(rank) + 1, .address = Str(rank), .step = 0, .checksum = 0});
    std::map<MemberId, Testimony> kept;
    world.WhenCrashed([&](World::Member& member) {
      const MemberId id = static_cast<MemberId>(member.rank()) + 1 + static_cast<MemberId>(member.life()) * 100;
      const fabric::Proof proof{.id = id, .how = "killed by signal 9", .testimony = kept[id]};
      for (int rank = 0; rank < size; ++rank)
        if (rank != member.rank())
          world.PostTo(member.rank(), rank, Envelope{.to = 0, .message = {}, .proof = proof}.Encode());
    });
    std::vector<Ended> ends(static_cast<std::size_t>(size));
    world.Run([&](World::Member& member) {
      const bool comes = member.life() > 0;
      Seat seat = first.seats[static_cast<std::size_t>(member.rank())];
      seat.id += static_cast<MemberId>(member.life()) * 100;
      ElasticGroup::Options how;
      for (const Seat& each : first.seats) how.contacts.push_back(each.address);
      how.let_in = 1s;
      how.membership = {.retry = 50ms, .patience = 3s};
      how.remember = [&](const Testimony& testimony) { kept[seat.id] = testimony; };
      ElasticGroup group(
          how, seat, comes ? Roster{} : first, member.post(),
          [&](const Roster& roster, int) -> Result<std::unique_ptr<fabric::Fabric>> {
            std::vector<int> ranks;
            for (const Seat& each : roster.seats) ranks.push_back(std::atoi(each.address.c_str()));
            return member.Connect(roster.generation, ranks);
          },
          member.clock());
      Ended end;
      end.ran = true;
      end.came = comes;
      strategy::Elastic* elastic = nullptr;
      Plan plan = plan_;
      plan.computing = [&] { member.Compute(1ms); };
      plan.own_strategy = [&](const strategy::Learner& learner) {
        strategy::Elastic::Options options{.strategy = plan.strategy, .how = {.algorithm = fabric::Algorithm::kRing}};
        options.strategy.batch = plan.train.batch;
        options.comes = comes;
        auto made = strategy::Elastic::Make(options, group, learner);
        CHECK(made.ok());
        elastic = made.value().get();
        return std::move(made).value();
      };
      plan.train.progress = [&](const Progress&) { end.losses = elastic->losses(); };
      end.outcome = bench_.RunBy(plan, member.DiskOver(bench_.files), member.clock());
      end.at = member.clock().Now();
      if (!member.dead()) ends[static_cast<std::size_t>(member.rank())] = std::move(end);
    });
    return ends;
  }
  void Forget() {
    for (const std::string& name : bench_.scratch.Names())
      if (name.starts_with("run.ckpt")) ASSERT_TRUE(bench_.files.Remove(bench_.scratch / name).ok());
  }
  static double Distance(const BenchOutcome& a, const BenchOutcome& b) {
    double apart = 0, size = 0;
    for (std::size_t block = 0; block < a.weights.size(); ++block)
      for (std::size_t i = 0; i < a.weights[block].size(); ++i) {
        apart += std::pow(a.weights[block][i] - b.weights[block][i], 2);
        size += std::pow(b.weights[block][i], 2);
      }
    return std::sqrt(apart / size);
  }

  Bench bench_;
  Plan plan_;
};

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
