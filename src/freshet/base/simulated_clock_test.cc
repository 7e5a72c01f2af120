#include "base/simulated_clock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"

namespace freshet::base {
namespace {

using namespace std::chrono_literals;

TEST(SimulatedClock, TimeStandsWhileSomebodyRunsAndJumpsWhenAllWait) {
  SimulatedClock clock;
  std::vector<int> order;
  Mutex mutex;
  const auto sleeper = [&](Clock::Duration time, int name) {
    return Thread(clock, [&clock, &order, &mutex, time, name] {
      clock.Sleep(time);
      EXPECT_EQ(clock.Now(), time);
      const Lock lock(mutex);
      order.push_back(name);
    });
  };
  {
    const SimulatedClock::Participant here(clock);
    Thread late = sleeper(2h, 2), early = sleeper(1h, 1);
    EXPECT_EQ(clock.Now(), 0s);  // this thread runs
    late.Join();
    early.Join();
    EXPECT_EQ(clock.Now(), 2h);
  }
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(SimulatedClock, AConditionEndsAtItsTimeOrWhenItIsNotifiedBefore) {
  SimulatedClock clock;
  const auto changed = clock.NewCondition();
  Mutex mutex;
  bool set = false;
  const SimulatedClock::Participant here(clock);
  Thread setter(clock, [&] {
    clock.Sleep(59min);
    const Lock lock(mutex);
    set = true;
    changed->NotifyAll();
  });
  Lock lock(mutex);
  const auto is_set = [&] { return set; };
  EXPECT_FALSE(changed->WaitFor(mutex, 30min, is_set));
  EXPECT_EQ(clock.Now(), 30min);
  EXPECT_TRUE(changed->WaitFor(mutex, 60min, is_set));
  EXPECT_EQ(clock.Now(), 59min);
  lock.unlock();
  setter.Join();
}

TEST(SimulatedClock, WhoWasNotifiedRunsBeforeTimeMoves) {
  SimulatedClock clock;
  const auto changed = clock.NewCondition();
  Mutex mutex;
  const SimulatedClock::Participant here(clock);
  for (int i = 0; i < 200; ++i) {
    bool ready = false;
    const Clock::Duration begun = clock.Now();
    Thread other(clock, [&] {
      Lock lock(mutex);
      changed->WaitFor(mutex, [&] { return ready; });
      EXPECT_EQ(clock.Now(), begun);  // though the notifier went on to sleep
    });
    {
      const Lock lock(mutex);
      ready = true;
      changed->NotifyOne();
    }
    clock.Sleep(1h);
    other.Join();
    EXPECT_EQ(clock.Now(), begun + 1h);
  }
}

TEST(SimulatedClock, ADescriptorIsReadBeforeTimeMoves) {
  SimulatedClock clock;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const SimulatedClock::Participant here(clock);
  EXPECT_FALSE(clock.WaitReadable(ends[0], 10min));
  EXPECT_EQ(clock.Now(), 10min);
  Thread writer(clock, [&] {
    clock.Sleep(5min);
    EXPECT_EQ(::write(ends[1], "x", 1), 1);
    clock.Sleep(5min);
  });
  EXPECT_TRUE(clock.WaitReadable(ends[0], 1h));
  EXPECT_EQ(clock.Now(), 15min);
  writer.Join();
  EXPECT_EQ(clock.Now(), 20min);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(ManualClock, WakesWhoWaitsForATimeWhenItIsTurnedThere) {
  ManualClock clock;
  const auto changed = clock.NewCondition();
  Mutex mutex;
  std::atomic<bool> over = false;
  Thread waiter(clock, [&] {
    Lock lock(mutex);
    while (changed->WaitUntil(mutex, 1h)) continue;
    over = true;
  });
  clock.Advance(59min);
  clock.Sleep(1min);
  waiter.Join();
  EXPECT_TRUE(over);
}

TEST(SystemClock, ConditionsAndDescriptorsEndAtTheirTime) {
  SystemClock clock;
  const auto changed = clock.NewCondition();
  Mutex mutex;
  Lock lock(mutex);
  const auto end = clock.Now() + 5ms;
  while (changed->WaitUntil(mutex, end)) continue;
  EXPECT_GE(clock.Now(), end);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_FALSE(clock.WaitReadable(ends[0], clock.Now() + 5ms));
  EXPECT_EQ(::write(ends[1], "x", 1), 1);
  EXPECT_TRUE(clock.WaitReadable(ends[0], Clock::Duration::max()));
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace freshet::base
