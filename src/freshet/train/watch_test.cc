#include "train/watch.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/simulated_clock.h"

namespace freshet::train {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Watch, TellsHowLongTheRunHasTaken) {
  base::ManualClock clock;
  clock.Advance(seconds(100));
  std::vector<Progress> told;
  Watch watch(
      clock, nullptr, [&](const Progress& progress) { told.push_back(progress); }, 60);
  watch.Start();
  clock.Advance(seconds(3));
  Progress progress;
  progress.rows = 7;
  watch.Tell(progress);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].rows, 7u);
  EXPECT_EQ(told[0].seconds, 3);
}

TEST(Watch, IsSilentForHalfASecondAtMostWhetherSomebodyListensOrNot) {
  base::ManualClock clock;
  Watch watch(clock, nullptr, {}, 60);
  watch.Start();
  for (int i = 0; i < 3; ++i) {
    clock.Advance(milliseconds(499));
    EXPECT_FALSE(watch.TellingIsDue());
    EXPECT_TRUE(watch.TellingIsDue(clock.Now() + milliseconds(1)));
    clock.Advance(milliseconds(1));
    EXPECT_TRUE(watch.TellingIsDue());
    watch.Tell({});
    EXPECT_FALSE(watch.TellingIsDue());
  }
}

TEST(Watch, CountsTheTimeToTheNextSaveFromTheLast) {
  base::ManualClock clock;
  Watch watch(clock, nullptr, {}, 60);
  watch.Start();
  clock.Advance(seconds(59));
  EXPECT_FALSE(watch.SavingIsDue(clock.Now()));
  clock.Advance(seconds(1));
  EXPECT_TRUE(watch.SavingIsDue(clock.Now()));
  watch.Saved();
  EXPECT_FALSE(watch.SavingIsDue(clock.Now()));
}

TEST(Watch, CountsNoTimeTwiceNorTimeBetweenPasses) {
  base::ManualClock clock;
  Watch watch(clock, nullptr, {}, 60);
  watch.BeginLap();
  clock.Advance(seconds(2));
  EXPECT_EQ(watch.Lap(), 2);
  clock.Advance(seconds(3));
  EXPECT_EQ(watch.Lap(), 3);
  clock.Advance(seconds(50));
  watch.BeginLap();
  clock.Advance(seconds(1));
  EXPECT_EQ(watch.Lap(), 1);
}

TEST(Watch, SeesThatItIsToStop) {
  base::ManualClock clock;
  std::atomic<bool> stop{false};
  const Watch watch(clock, &stop, {}, 60);
  EXPECT_FALSE(watch.stopping());
  stop = true;
  EXPECT_TRUE(watch.stopping());
  EXPECT_FALSE(Watch(clock, nullptr, {}, 60).stopping());
}

}  // namespace
}  // namespace freshet::train
