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
