#include "fabric/sim/world.h"

#include <gtest/gtest.h>

#include <map>

#include "base/scratch_testing.h"
#include "fabric/collectives/collectives.h"

namespace freshet::fabric::sim {
namespace {

using namespace std::chrono_literals;

struct End {
  std::string error;  // "": none
  base::Clock::Duration at{0};
  int rounds = 0;
};

// Members that add up numbers together, a hundred times, with a millisecond of work between.
std::map<int, End> AddUp(const std::string& faults, int size = 4, std::uint64_t seed = 1,
                         std::string* trace = nullptr) {
  WorldOptions options{.size = size, .seed = seed, .faults = ParseFaults(faults, size).value()};
  options.fabric.heartbeat = 10ms;
  World world(options);
  if (trace != nullptr) world.KeepTrace();
  std::map<int, End> ends;
  world.Run([&](World::Member& member) {
    const auto fabric = member.Connect();
    Collectives collectives(*fabric);
    End end;
    for (; end.rounds < 100 && end.error.empty(); ++end.rounds) {
      member.Compute(1ms);
      std::vector<float> values(50, static_cast<float>(member.rank() + 1));
      const Result<void> summed = collectives.AllReduce(values, Algorithm::kRing);
      if (!summed.ok()) end.error = summed.error().text;
      if (summed.ok()) EXPECT_EQ(values, std::vector<float>(50, static_cast<float>(size * (size + 1) / 2)));
    }
    end.at = member.clock().Now();
    if (!member.dead()) ends[member.rank()] = end;
  });
  if (trace != nullptr) *trace = world.trace();
  return ends;
}

bool AllDone(const std::map<int, End>& ends) {
  for (const auto& [rank, end] : ends)
    if (!end.error.empty() || end.rounds != 100) return false;
  return true;
}

TEST(World, UndisturbedMembersComeToTheirEnd) {
  const auto ends = AddUp("");
  EXPECT_EQ(ends.size(), 4U);
  EXPECT_TRUE(AllDone(ends));
  EXPECT_GT(ends.at(0).at, 100ms);
  EXPECT_LT(ends.at(0).at, 200ms);
}

TEST(World, TheSameSeedIsTheSameRunToTheLastLetter) {
  std::string first, again, other;
  const std::string faults = "pause rank=1 at=20ms for=30ms; crash rank=2 at=70ms";
  AddUp(faults, 4, 5, &first);
  AddUp(faults, 4, 5, &again);
  AddUp(faults, 4, 6, &other);
  EXPECT_GT(first.size(), 10'000U);
  EXPECT_EQ(first, again);
  EXPECT_NE(first, other);
}

TEST(World, ACrashIsKnownAtOnceAndNamed) {
  const auto ends = AddUp("crash rank=2 at=50ms");
  EXPECT_EQ(ends.size(), 3U);
  for (const auto& [rank, end] : ends) {
    EXPECT_NE(end.error.find("rank 2 (sim2) is gone: its connection was closed"), std::string::npos) << end.error;
    EXPECT_LT(end.at, 52ms);
  }
}

TEST(World, AMachineThatIsGoneIsMissedAfterItsHeartbeats) {
  const auto ends = AddUp("power-off rank=0 at=50ms");
  EXPECT_EQ(ends.size(), 3U);
  for (const auto& [rank, end] : ends) {
    EXPECT_NE(end.error.find("rank 0 (sim0) is gone: silent for"), std::string::npos) << end.error;
    EXPECT_GT(end.at, 150ms);
    EXPECT_LT(end.at, 190ms);  // 12 heartbeats of 10 ms, and one to notice
  }
}

TEST(World, AShortPauseCostsTimeAndALongOneTheGroup) {
  const auto shortly = AddUp("pause rank=3 at=50ms for=80ms");
  EXPECT_TRUE(AllDone(shortly));
  EXPECT_GT(shortly.at(0).at, 180ms);
  const auto long_one = AddUp("pause rank=3 at=50ms for=2s");
  EXPECT_EQ(long_one.size(), 4U);
  for (const int rank : {0, 1, 2})
    EXPECT_NE(long_one.at(rank).error.find("rank 3 (sim3) is gone: silent"), std::string::npos)
        << long_one.at(rank).error;
  EXPECT_FALSE(long_one.at(3).error.empty());  // it comes back, and the others have given it up
}

TEST(World, APartitionThatHealsInTimeCostsNothingButTime) {
  EXPECT_TRUE(AllDone(AddUp("partition 0-1|2-3 from=30ms for=60ms")));
  EXPECT_TRUE(AllDone(AddUp("partition 0>3 from=30ms for=60ms")));
  EXPECT_TRUE(AllDone(AddUp("delay 0-1|2-3 by=3ms from=30ms for=60ms")));
  EXPECT_TRUE(AllDone(AddUp("clock-jump rank=1 by=60min at=40ms")));
  const auto slow = AddUp("slow rank=1 times=5 at=0s");
  EXPECT_TRUE(AllDone(slow));
  EXPECT_GT(slow.at(0).at, 500ms);
}

// Letters that were on their way when it began come before those that were sent meanwhile.
TEST(World, APartitionChangesNothingInTheOrderOfLetters) {
  for (int at = 0; at < 200; at += 10) {
    const std::string fault = Str("partition 0|1 at=", at, "us for=2ms");
    WorldOptions options{.size = 2, .seed = 3, .faults = ParseFaults(fault, 2).value()};
    World world(options);
    world.Run([&](World::Member& member) {
      const auto fabric = member.Connect();
      for (std::uint64_t i = 0; i < 8; ++i) {
        std::uint64_t number = i;
        const auto bytes = std::as_writable_bytes(std::span(&number, 1));
        if (member.rank() == 0) {
          ASSERT_TRUE(fabric->Send(1, 7, bytes).ok());
          member.Compute(20us);
        } else {
          ASSERT_TRUE(fabric->Receive(0, 7, bytes).ok());
          EXPECT_EQ(number, i) << fault;
        }
      }
    });
  }
}

TEST(World, APartitionThatStaysEndsTheGroupOnBothSides) {
  for (const std::string plan : {"partition 0-1|2-3 from=30ms", "partition 0>1 from=30ms", "disconnect 1|2 at=40ms"}) {
    SCOPED_TRACE(plan);
    const auto ends = AddUp(plan);
    EXPECT_EQ(ends.size(), 4U);
    for (const auto& [rank, end] : ends) {
      EXPECT_NE(end.error.find(" is gone: "), std::string::npos) << end.error;
      EXPECT_LT(end.at, 320ms);
    }
  }
}

// Its group is gone, but in a later generation it has its place again; what was said in the earlier does not get there.
TEST(World, WhoIsStartedAgainMeetsTheOthersInALaterGeneration) {
  WorldOptions options{.size = 3, .seed = 7, .faults = ParseFaults("crash rank=1 at=5ms for=4ms", 3).value()};
  options.fabric.heartbeat = 10ms;
  World world(options);
  std::map<int, int> sums, lives;
  world.Run([&](World::Member& member) {
    const auto add = [&](std::uint64_t generation) {
      const auto fabric = member.Connect(generation);
      EXPECT_EQ(fabric->generation(), generation);
      Collectives collectives(*fabric);
      int rounds = 0;
      for (bool goes_on = true; goes_on && rounds < 20;) {
        member.Compute(1ms);
        std::vector<float> values(10, static_cast<float>(generation));
        goes_on = collectives.AllReduce(values, Algorithm::kRing).ok();
        if (goes_on) EXPECT_EQ(values[0], 3 * static_cast<float>(generation));
        rounds += goes_on ? 1 : 0;
      }
      return rounds;
    };
    if (member.life() == 0) EXPECT_LT(add(1), 20);
    const int rounds = add(2);
    if (member.dead()) return;
    sums[member.rank()] = rounds;
    lives[member.rank()] = member.life();
  });
  EXPECT_EQ(sums, (std::map<int, int>{{0, 20}, {1, 20}, {2, 20}}));
  EXPECT_EQ(lives, (std::map<int, int>{{0, 0}, {1, 1}, {2, 0}}));
}

TEST(World, ADiskIsFullForAWhileAndAWriteIsTornByACrash) {
  const base::ScratchDirectory directory;
  base::PosixFiles files;
  World world(
      {.size = 2, .faults = ParseFaults("disk-full rank=0 at=10ms for=10ms; torn-write rank=1 at=30ms", 2).value()});
  std::vector<std::string> said;
  world.Run([&](World::Member& member) {
    Disk& disk = member.DiskOver(files);
    for (int i = 0; i < 6; ++i) {
      member.Compute(7ms);
      const Result<void> written =
          base::WriteAtomic(disk, directory / Str("file", member.rank()),
                            [&](base::OutputFile& file) { return file.Write(Str("round ", i, " of many rounds")); });
      if (!written.ok() && !member.dead()) said.push_back(Str(member.rank(), ".", i, ": ", written.error().text));
    }
  });
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("0.1: "), std::string::npos) << said[0];
  EXPECT_NE(said[0].find("no space left"), std::string::npos) << said[0];
  EXPECT_EQ(directory.Read("file0"), "round 5 of many rounds");
  EXPECT_EQ(directory.Read("file1"), "round 3 of many rounds");  // the fifth was torn, beside it
  EXPECT_EQ(directory.Names().size(), 3U);
}

}  // namespace
}  // namespace freshet::fabric::sim
