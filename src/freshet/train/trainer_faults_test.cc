// Training in simulated worlds to which one fault happens: how it ends is as promised, and what it leaves behind leads
// to the model that nothing would have disturbed. docs/simulation.md says how another promise is added.

#include <cstdio>
#include <cstdlib>

#include "fabric/sim/world.h"
#include "train/bench_testing.h"

namespace freshet::train {
namespace {

using namespace std::chrono_literals;
using fabric::sim::Fault;
using fabric::sim::World;
using fabric::sim::WorldOptions;
using Kind = Fault::Kind;
using Duration = base::Clock::Duration;

constexpr Duration kHeartbeat = 5ms;
constexpr int kMisses = 6;

struct Ended {
  BenchOutcome outcome;
  Duration at{0};
  bool dead = false;
};

class TrainingUnderFaults : public testing::TestWithParam<std::string> {
 protected:
  const int workers_ = static_cast<int>(NumberIn("FRESHET_WORKERS", 4));

  TrainingUnderFaults() {
    plan_ = PlanForWorlds(bench_);
    const bool parts = GetParam() == "ring_of_parts";  // whose members each read a part of the rows
    plan_.strategy.kind = parts ? "ring" : GetParam();
    plan_.strategy.whole = !parts;
    plan_.strategy.every = 3;
    plan_.strategy.group = 2;
  }

  // Every worker, as it ended.
  std::vector<Ended> Train(std::uint64_t seed, std::vector<Fault> faults, std::string* trace = nullptr) {
    WorldOptions options{.size = workers_, .seed = seed, .faults = std::move(faults)};
    options.fabric.heartbeat = kHeartbeat;
    options.fabric.heartbeat_misses = kMisses;
    World world(options);
    if (trace != nullptr) world.KeepTrace();
    std::vector<Ended> ends(static_cast<std::size_t>(workers_));
    world.Run([&](World::Member& member) {
      if (member.life() > 0) return;  // its group is gone
      Ended& end = ends[static_cast<std::size_t>(member.rank())];
      Plan plan = plan_;
      plan.computing = [&] { member.Compute(1ms); };
      {
        const auto fabric = member.Connect();
        end.outcome = bench_.RunAs(*fabric, plan, member.DiskOver(bench_.files), &member.clock());
      }
      end.at = member.clock().Now();
      end.dead = member.dead();
    });
    if (trace != nullptr) *trace = world.trace();
    return ends;
  }
  void Forget() {
    for (const std::string& name : bench_.scratch.Names())
      if (name.starts_with("run.ckpt")) ASSERT_TRUE(bench_.files.Remove(bench_.scratch / name).ok());
  }

  // What is promised of each who was not killed.
  void ExpectPromises(const Fault& fault, const std::vector<Ended>& ends, const BenchOutcome& undisturbed) {
    // The last words of the lost may be on their way when it dies: silence begins when they have come.
    const fabric::sim::Link link;
    const Duration patience = kHeartbeat * (kMisses + 2) + link.latency + link.jitter;
    for (std::size_t rank = 0; rank < ends.size(); ++rank) {
      const Ended& end = ends[rank];
      if (end.dead) continue;
      SCOPED_TRACE(Str("rank ", rank));
      if (end.outcome.ok()) {
        EXPECT_EQ(end.outcome.weights, undisturbed.weights);
        continue;
      }
      const std::string& text = end.outcome.error->text;
      if (fault.kind == Kind::kDiskFull) {  // who has it says so, and the others name it
        const bool own = rank == static_cast<std::size_t>(fault.ranks[0]);
        EXPECT_EQ(end.outcome.code(), own ? Code::kIo : Code::kPeerLost) << text;
        EXPECT_NE(text.find("no space left"), std::string::npos) << text;
        EXPECT_TRUE(own || text.starts_with(Str("rank ", fault.ranks[0], " ("))) << text;
        continue;
      }
      EXPECT_EQ(end.outcome.code(), Code::kPeerLost) << text;
      EXPECT_NE(text.find(" is gone"), std::string::npos) << text;
      const bool kills = fault.kind == Kind::kCrash || fault.kind == Kind::kPowerOff || fault.kind == Kind::kTornWrite;
      if (kills) EXPECT_NE(text.find(Str("rank ", fault.ranks[0], " (")), std::string::npos) << text;
      if (fault.kind == Kind::kCrash || fault.kind == Kind::kPowerOff) EXPECT_LE(end.at, fault.at + patience) << text;
      // Nobody is given up for less.
      EXPECT_TRUE(kills || fault.kind == Kind::kDisconnect || fault.kind == Kind::kPause ||
                  fault.kind == Kind::kPartition || fault.kind == Kind::kDelay)
          << text;
    }
  }

  Bench bench_;
  Plan plan_;
};

TEST_P(TrainingUnderFaults, EndsAsPromisedAndGoesOnToTheSameModel) {
  const std::vector<Ended> undisturbed = Train(1, {});
  for (const Ended& end : undisturbed) {
    ASSERT_TRUE(end.outcome.ok()) << end.outcome.error->text;
    EXPECT_EQ(end.outcome.weights, undisturbed[0].outcome.weights);
  }
  Forget();
  const std::vector<Kind> kinds = {Kind::kCrash,     Kind::kPowerOff,   Kind::kPause, Kind::kPartition,
                                   Kind::kDelay,     Kind::kDisconnect, Kind::kSlow,  Kind::kDiskFull,
                                   Kind::kTornWrite, Kind::kClockJump};
  const std::uint64_t first = NumberIn("FRESHET_SEED", 1);
  const std::uint64_t seeds = std::getenv("FRESHET_SEED") != nullptr ? 1 : NumberIn("FRESHET_SEEDS", 200);
  std::uint64_t ended_early = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const Fault fault = DrawFault(kinds, seed, workers_, undisturbed[0].at);
    SCOPED_TRACE(Str("seed ", seed, ", ", fault.ToText(), "; to see it again: FRESHET_SEED=", seed,
                     " train_test --gtest_filter='*TrainingUnderFaults*/", GetParam(), "'"));
    std::string trace;
    const std::vector<Ended> ends = Train(seed, {fault}, std::getenv("FRESHET_SEED") != nullptr ? &trace : nullptr);
    std::fputs(trace.c_str(), stdout);
    ExpectPromises(fault, ends, undisturbed[0].outcome);
    bool whole = true;
    for (const Ended& end : ends) whole = whole && !end.dead && end.outcome.ok();
    if (!whole) {
      ++ended_early;
      const std::vector<Ended> resumed = Train(seed + 1, {});
      ExpectSame(resumed[0].outcome, undisturbed[0].outcome);
      for (const Ended& end : resumed) EXPECT_EQ(end.outcome.weights, undisturbed[0].outcome.weights);
    }
    Forget();
    if (HasFailure()) return;
  }
  if (seeds >= 100) {
    EXPECT_GT(ended_early, seeds / 5);
    EXPECT_LT(ended_early, seeds * 4 / 5);
  }
}

// A crashed worker is started again, and the others meet it in the next generation: all go on from the checkpoint.
TEST_P(TrainingUnderFaults, AWorkerThatIsStartedAgainGoesOnWithTheOthers) {
  const std::vector<Ended> undisturbed = Train(1, {});
  Forget();
  std::uint64_t went_on = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Fault fault = fabric::sim::DrawFault({Kind::kCrash}, seed, workers_, undisturbed[0].at * 8 / 10);
    fault.lasts = kHeartbeat * static_cast<int>(seed % 4);
    SCOPED_TRACE(Str("seed ", seed, ", ", fault.ToText()));
    WorldOptions options{.size = workers_, .seed = seed, .faults = {fault}};
    options.fabric.heartbeat = kHeartbeat;
    options.fabric.heartbeat_misses = kMisses;
    World world(options);
    std::vector<Ended> ends(static_cast<std::size_t>(workers_));
    world.Run([&](World::Member& member) {
      Plan plan = plan_;
      plan.computing = [&] { member.Compute(1ms); };
      Ended end;
      base::Files& files = member.DiskOver(bench_.files);
      for (std::uint64_t generation = member.life() > 0 ? 2 : 1; generation <= 2; ++generation) {
        const auto fabric = member.Connect(generation);
        // As workers meet before they load: nobody is still writing what others read.
        if (generation == 2 && !fabric::Collectives(*fabric).Barrier().ok()) break;
        end.outcome = bench_.RunAs(*fabric, plan, files, &member.clock());
        if (end.outcome.ok() || end.outcome.code() != Code::kPeerLost) break;
        if (generation == 1 && !member.dead()) ++went_on;
      }
      if (!member.dead()) ends[static_cast<std::size_t>(member.rank())] = end;
    });
    for (const Ended& end : ends) {
      ASSERT_TRUE(end.outcome.ok()) << end.outcome.error->text;
      EXPECT_EQ(end.outcome.weights, undisturbed[0].outcome.weights);
    }
    Forget();
    if (HasFailure()) return;
  }
  EXPECT_GT(went_on, 20u);
}

INSTANTIATE_TEST_SUITE_P(Trainer, TrainingUnderFaults,
                         testing::Values("allreduce", "average", "groups", "ring", "ring_of_parts"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace freshet::train
