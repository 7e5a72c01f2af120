// Workers that a signal has stopped. The clock moves while they are frozen, in steps.

#include <algorithm>

#include "launch_crew_testing.h"
#include "process_state.h"

namespace freshet::cli {
namespace {

constexpr auto kStep = std::chrono::milliseconds(250);

class LaunchFrozenTest : public LaunchCrewTest {
 protected:
  bool Frozen(const std::string& after) const {
    const pid_t pid = NumberAfter(after);
    const auto found = pid > 0 ? StateOf(pid) : std::nullopt;
    return found.has_value() && found->frozen();
  }
  // Moves the clock while this holds. It should not while a worker is awake: how long that takes is the machine's
  // affair.
  std::function<int()> StepWhile(std::function<bool()> condition) {
    return [this, condition = std::move(condition)] {
      if (condition()) clock_.Advance(kStep);
      return 0;
    };
  }
};

constexpr char kFreeze[] = "echo ready $R $$; kill -STOP $$; while :; do sleep 0.01; done";

TEST_F(LaunchFrozenTest, AFrozenWorkerIsWokenAndToldToEndAsSoonAsAnotherHasFailed) {
  const auto begun = clock_.Now();
  const auto outcome =
      Run(2, Str("[ $R = 0 ] && echo failing $$ && exit 4; trap 'echo told; exit 143' TERM; ", kFreeze),
          StepWhile([&] { return OneFailedOneReady() && Frozen("ready 1 "); }));
  EXPECT_TRUE(Said("[rank 1] told"));
  EXPECT_EQ(outcome.code, 4);
  EXPECT_TRUE(Cause(outcome).starts_with("rank 1 on localhost: frozen")) << Cause(outcome);
  EXPECT_LT(clock_.Now() - begun, kGrace) << "it was not waited for like one that is awake";
}

TEST_F(LaunchFrozenTest, AFailureOfAnotherKindStaysTheCause) {
  const auto outcome = Run(2, Str("[ $R = 0 ] && echo failing $$ && exit 3; ", kFreeze),
                           StepWhile([&] { return OneFailedOneReady() && Frozen("ready 1 "); }));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(Cause(outcome), "rank 0 on localhost: exit code 3");
}

TEST_F(LaunchFrozenTest, OneThatIsFrozenAgainAndAgainIsKilled) {
  const auto begun = clock_.Now();
  const auto outcome =
      Run(2, Str("[ $R = 0 ] && echo failing $$ && exit 4; trap '' TERM; trap 'kill -STOP $$' CONT; ", kFreeze),
          StepWhile([&] { return OneFailedOneReady() && Frozen("ready 1 "); }));
  EXPECT_EQ(outcome.code, 4);
  EXPECT_TRUE(SoonGone(NumberAfter("ready 1 ")));
  EXPECT_LT(clock_.Now() - begun, kGrace);
}

TEST_F(LaunchFrozenTest, WhenAllAreFrozenTheyAreWokenAndToldToEnd) {
  const auto begun = clock_.Now();
  const auto outcome = Run(2, Str("trap 'echo told $R; exit 143' TERM; ", kFreeze),
                           StepWhile([&] { return Frozen("ready 0 ") && Frozen("ready 1 "); }));
  EXPECT_TRUE(Said("told 0") && Said("told 1"));
  EXPECT_EQ(outcome.code, 4);
  EXPECT_TRUE(Cause(outcome).starts_with("rank 0 on localhost and 1 more: frozen")) << Cause(outcome);
  EXPECT_GE(clock_.Now() - begun, std::chrono::seconds(4));
  EXPECT_LT(clock_.Now() - begun, kGrace);
}

TEST_F(LaunchFrozenTest, TimeInWhichWeDidNotRunOurselvesIsNotHeldAgainstThem) {
  // As after the suspension of a whole job: we go on first, and find all workers frozen for an hour.
  bool moved = false;
  const auto outcome = Run(2, "echo ready $R $$; kill -STOP $$; exit 0", [&] {
    if (moved) {
      for (const char* const worker : {"ready 0 ", "ready 1 "}) kill(NumberAfter(worker), SIGCONT);
    } else if (Frozen("ready 0 ") && Frozen("ready 1 ")) {
      clock_.Advance(std::chrono::hours(1));
      moved = true;
    }
    return 0;
  });
  EXPECT_EQ(outcome.code, 0) << Cause(outcome);
}

TEST_F(LaunchFrozenTest, ASignalFromOutsideReachesWhoIsFrozenToo) {
  const auto begun = clock_.Now();
  int signals = 1;
  const auto outcome = Run(
      2, Str("trap 'echo told $R; exit 143' TERM; [ $R = 1 ] && echo up && while :; do sleep 0.01; done; ", kFreeze),
      [&] {
        const bool ready = Frozen("ready 0 ") && Said("up");
        if (ready && signals > 0) return signals = 0, SIGTERM;
        if (signals == 0 && Frozen("ready 0 ")) clock_.Advance(kStep);
        return 0;
      });
  EXPECT_TRUE(Said("told 0") && Said("told 1"));
  EXPECT_EQ(outcome.code, 143);
  EXPECT_EQ(Cause(outcome), "none");
  EXPECT_LT(clock_.Now() - begun, kGrace);
}

}  // namespace
}  // namespace freshet::cli
