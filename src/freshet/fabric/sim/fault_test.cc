#include "fabric/sim/fault.h"

#include <gtest/gtest.h>

namespace freshet::fabric::sim {
namespace {

using namespace std::chrono_literals;
using Kind = Fault::Kind;

TEST(Faults, AreReadFromAPlan) {
  const auto faults = ParseFaults(
      "crash rank=3 at=2.5s; partition 0-3|4,6-7 from=4s for=2s;partition 0>1 at=1ms; slow rank=1 times=2.5 at=0s;"
      " clock-jump rank=2 by=-3min at=1s ;",
      8);
  ASSERT_TRUE(faults.ok()) << faults.error().text;
  const std::vector<Fault>& all = faults.value();
  ASSERT_EQ(all.size(), 5U);
  EXPECT_EQ(all[0].kind, Kind::kCrash);
  EXPECT_EQ(all[0].ranks, std::vector{3});
  EXPECT_EQ(all[0].at, 2500ms);
  EXPECT_EQ(all[1].ranks, (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(all[1].others, (std::vector{4, 6, 7}));
  EXPECT_EQ(all[1].lasts, 2s);
  EXPECT_FALSE(all[1].one_way);
  EXPECT_TRUE(all[2].one_way);
  EXPECT_EQ(all[2].lasts, Fault::kForEver);
  EXPECT_EQ(all[3].times, 2.5);
  EXPECT_EQ(all[4].by, -3min);
}

TEST(Faults, SayWhatIsWrongWithAPlan) {
  const auto problem = [](const std::string& text) {
    const auto faults = ParseFaults(text, 4);
    EXPECT_FALSE(faults.ok()) << text;
    return faults.ok() ? "" : faults.error().text;
  };
  EXPECT_EQ(problem("crash rank=4 at=1s"), "fault 'crash rank=4 at=1s': there is no rank 4: the group has 4 members");
  EXPECT_EQ(problem("crash rank=x at=1s"), "fault 'crash rank=x at=1s': 'x' is no rank");
  EXPECT_EQ(problem("crash rank=1"), "fault 'crash rank=1': when? Write at=2.5s");
  EXPECT_EQ(problem("crash at=1s"), "fault 'crash at=1s': whose? Write rank=3");
  EXPECT_EQ(problem("crash rank=1 at=1"),
            "fault 'crash rank=1 at=1': 'at=1': a time is a number and a unit, such as 2.5s or 300ms");
  EXPECT_EQ(problem("crash rank=1 at=-1s"),
            "fault 'crash rank=1 at=-1s': 'at=-1s': a time is a number and a unit, such as 2.5s or 300ms");
  EXPECT_EQ(problem("power-off rank=1 at=1s for=1s"),
            "fault 'power-off rank=1 at=1s for=1s': 'for=1s' does not belong to power-off");
  EXPECT_EQ(problem("pause rank=1 at=1s"), "fault 'pause rank=1 at=1s': how long? Write for=2s");
  EXPECT_EQ(problem("slow rank=1 at=1s times=0"), "fault 'slow rank=1 at=1s times=0': 'times=0': a number from 1 on");
  EXPECT_EQ(problem("delay 0|1 at=1s"), "fault 'delay 0|1 at=1s': how much? Write by=");
  EXPECT_EQ(problem("partition 0-1 at=1s"),
            "fault 'partition 0-1 at=1s': between whom? Write 0-3|4-7, or 0>1 for one way");
  EXPECT_EQ(problem("partition 0-2|2-3 at=1s"), "fault 'partition 0-2|2-3 at=1s': rank 2 is on both sides");
  EXPECT_NE(problem("explode rank=1 at=1s").find("there is no 'explode'; known are crash, power-off"),
            std::string::npos);
}

TEST(Faults, ThoseDrawnFromSeedsCanBeWrittenDown) {
  const std::vector<Kind> all = {Kind::kCrash,     Kind::kPowerOff,   Kind::kPause, Kind::kPartition,
                                 Kind::kDelay,     Kind::kDisconnect, Kind::kSlow,  Kind::kDiskFull,
                                 Kind::kTornWrite, Kind::kClockJump};
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    const Fault fault = DrawFault(all, seed, 5, 3s);
    const std::string text = fault.ToText();
    EXPECT_EQ(DrawFault(all, seed, 5, 3s).ToText(), text);
    const auto again = ParseFaults(text, 5);
    ASSERT_TRUE(again.ok()) << again.error().text;
    ASSERT_EQ(again.value().size(), 1U);
    EXPECT_EQ(again.value()[0].ToText(), text);
    EXPECT_EQ(again.value()[0].at, fault.at) << text;
    EXPECT_LE(fault.at, 3s);
  }
}

}  // namespace
}  // namespace freshet::fabric::sim
