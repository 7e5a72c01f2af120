#include "base/fibers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/jobs.h"
#include "base/thread.h"
#include "base/thread_pool.h"

namespace freshet::base {
namespace {

using namespace std::chrono_literals;

TEST(Fibers, AnHourPassesInNoTimeAndInOrder) {
  Fibers fibers;
  std::vector<std::string> said;
  fibers.StartIn(0, [&] {
    Thread late(fibers, [&] {
      fibers.Sleep(1h);
      said.emplace_back("late");
      EXPECT_EQ(fibers.Now(), 1h);
    });
    Thread early(fibers, [&] {
      fibers.Sleep(1min);
      said.emplace_back("early");
    });
    late.Join();
    early.Join();
    said.emplace_back("end");
  });
  fibers.At(30min, [&] { said.emplace_back("event"); });
  fibers.Run();
  EXPECT_EQ(said, (std::vector<std::string>{"early", "event", "late", "end"}));
}

// Ten fibers that meet at a counter under a mutex, some of which sleep with the mutex in their hands.
std::string Meeting(std::uint64_t seed) {
  Fibers fibers(seed);
  Mutex mutex;
  std::string order;
  fibers.StartIn(0, [&] {
    std::vector<Thread> threads;
    for (int i = 0; i < 10; ++i)
      threads.emplace_back(fibers, [&, i] {
        for (int k = 0; k < 3; ++k) {
          const Lock lock(mutex);
          const std::size_t before = order.size();
          if (i % 3 == 0) fibers.Sleep(1s);
          EXPECT_EQ(order.size(), before);  // nobody else was in there
          order += static_cast<char>('0' + i);
        }
      });
    for (Thread& thread : threads) thread.Join();
  });
  fibers.Run();
  EXPECT_EQ(fibers.Now(), 12s);
  return order;
}

TEST(Fibers, TheSameSeedIsTheSameOrderAndAnotherIsAnother) {
  const std::string order = Meeting(7);
  EXPECT_EQ(order.size(), 30U);
  EXPECT_EQ(Meeting(7), order);
  EXPECT_NE(Meeting(8), order);
}

TEST(Fibers, ConditionsAreNotifiedOrRunOutOfTime) {
  Fibers fibers;
  Mutex mutex;
  const auto changed = fibers.NewCondition();
  bool set = false;
  fibers.StartIn(0, [&] {
    Thread setter(fibers, [&] {
      fibers.Sleep(59min);
      const Lock lock(mutex);
      set = true;
      changed->NotifyAll();
    });
    {
      const Lock lock(mutex);
      EXPECT_FALSE(changed->WaitFor(mutex, 30min, [&] { return set; }));
      EXPECT_EQ(fibers.Now(), 30min);
      EXPECT_TRUE(changed->WaitFor(mutex, 60min, [&] { return set; }));
      EXPECT_EQ(fibers.Now(), 59min);
    }
    setter.Join();
  });
  fibers.Run();
}

TEST(Fibers, AFrozenHouseDoesNothingAndGoesOnWhereItWas) {
  Fibers fibers;
  std::vector<Clock::Duration> ticks[2];
  for (const int house : {0, 1})
    fibers.StartIn(house, [&, house] {
      Thread child(fibers, [&] {  // of the same house
        for (int i = 0; i < 5; ++i) {
          fibers.Sleep(1s);
          ticks[house].push_back(fibers.Now());
        }
      });
      child.Join();
    });
  fibers.At(2500ms, [&] { fibers.Freeze(1); });
  fibers.At(10s, [&] { fibers.Thaw(1); });
  fibers.Run();
  EXPECT_EQ(ticks[0], (std::vector<Clock::Duration>{1s, 2s, 3s, 4s, 5s}));
  EXPECT_EQ(ticks[1], (std::vector<Clock::Duration>{1s, 2s, 10s, 11s, 12s}));
}

TEST(Fibers, PoolsAndJobThreadsAreFibersToo) {
  Fibers fibers(3);
  int sum = 0;
  std::vector<int> jobs;
  fibers.StartIn(0, [&] {
    ThreadPool pool(4, &fibers);
    pool.Run(100, [&](int i) {
      if (i % 10 == 0) fibers.Sleep(1ms);
      sum += i;
    });
    JobThread worker(fibers);
    for (int i = 0; i < 5; ++i)
      worker.Post([&, i] {
        fibers.Sleep(1s);
        jobs.push_back(i);
      });
  });
  fibers.Run();
  EXPECT_EQ(sum, 4950);
  EXPECT_EQ(jobs, (std::vector<int>{0, 1, 2, 3, 4}));
}

}  // namespace
}  // namespace freshet::base
