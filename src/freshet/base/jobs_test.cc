#include "base/jobs.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/simulated_clock.h"

namespace freshet::base {
namespace {

using namespace std::chrono_literals;

TEST(Jobs, RunInTheOrderTheyCameAndRingWhenTheyDo) {
  ManualClock clock;
  Bell bell(clock);
  Jobs jobs(bell);
  std::vector<int> ran;
  for (int i = 0; i < 3; ++i) jobs.Post([&ran, i] { ran.push_back(i); });
  bell.Wait();  // rung
  while (jobs.RunOne()) continue;
  EXPECT_EQ(ran, (std::vector<int>{0, 1, 2}));
  EXPECT_FALSE(jobs.RunOne());
}

TEST(JobThread, RunsEveryJobBeforeItIsGoneAlsoThoseThatJobsPost) {
  SystemClock clock;
  std::vector<int> ran;
  {
    JobThread thread(clock);
    EXPECT_TRUE(thread.Post([&] {
      ran.push_back(0);
      thread.Post([&] {
        ran.push_back(2);
        thread.Post([&] { ran.push_back(3); });
      });
    }));
    EXPECT_FALSE(thread.Post([&] { ran.push_back(1); }));
  }
  ASSERT_EQ(ran.size(), 4u);
  std::erase(ran, 1);  // the other thread's may come at any time behind the first
  EXPECT_EQ(ran, (std::vector<int>{0, 2, 3}));
}

TEST(JobThread, IsDrivenByASimulatedClock) {
  SimulatedClock clock;
  const SimulatedClock::Participant here(clock);
  Clock::Duration at{};
  {
    JobThread thread(clock);
    thread.Post([&] {
      clock.Sleep(3h);
      at = clock.Now();
    });
  }
  EXPECT_EQ(at, 3h);
}

TEST(Bell, IsWaitedForAsLongAsSaid) {
  SimulatedClock clock;
  const SimulatedClock::Participant here(clock);
  Bell bell(clock);
  bell.Wait(10min);
  EXPECT_EQ(clock.Now(), 10min);
  bell.Ring();
  bell.Wait(10min);
  EXPECT_EQ(clock.Now(), 10min);
}

}  // namespace
}  // namespace freshet::base
