#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "base/str.h"

namespace freshet::base {
namespace {

TEST(ThreadPool, RunsEveryTaskOnceWhateverTheWidthAndCount) {
  for (int width = 1; width <= 5; ++width) {
    ThreadPool pool(width);
    ASSERT_EQ(pool.width(), width);
    for (const int count : {0, 1, 2, 3, 17, 100}) {
      SCOPED_TRACE(Str("width ", width, " count ", count));
      std::vector<int> runs(static_cast<std::size_t>(count));  // one place a task: no two threads share one
      pool.Run(count, [&](int task) { ++runs[static_cast<std::size_t>(task)]; });
      ASSERT_EQ(runs, std::vector<int>(static_cast<std::size_t>(count), 1));
    }
  }
}

TEST(ThreadPool, WhatTasksWroteIsSeenAfterRunInEveryOfManyRounds) {
  ThreadPool pool(4);
  std::vector<int> values(8);
  for (int round = 1; round <= 2000; ++round) {
    pool.Run(8, [&](int task) { values[static_cast<std::size_t>(task)] += task; });
    for (int task = 0; task < 8; ++task) ASSERT_EQ(values[static_cast<std::size_t>(task)], task * round) << round;
  }
}

TEST(ThreadPool, RunsOneTaskOnEachOtherThreadBesideTheCaller) {
  for (int width = 1; width <= 5; ++width) {
    SCOPED_TRACE(Str("width ", width));
    ThreadPool pool(width);
    for (int round = 0; round < 100; ++round) {
      std::atomic<int> tasks{0};
      std::atomic<bool> over{false};
      const auto caller = std::this_thread::get_id();
      bool own_here = false;
      pool.RunBeside(
          [&] {
            EXPECT_NE(std::this_thread::get_id(), caller);
            ++tasks;
            while (!over) std::this_thread::yield();
          },
          [&] {
            own_here = std::this_thread::get_id() == caller;
            while (round % 2 == 0 && tasks < width - 1) std::this_thread::yield();
            over = true;
          });
      ASSERT_TRUE(own_here);
      ASSERT_LE(tasks, width - 1);
      int after = 0;
      pool.Run(1, [&](int) { ++after; });
      ASSERT_EQ(after, 1) << "a task left over would have been run here";
    }
  }
}

TEST(InlineExecutor, DoesTheCallersOwnWorkAlone) {
  InlineExecutor executor;
  bool own = false;
  executor.RunBeside([] { FAIL() << "there is no other thread"; }, [&] { own = true; });
  EXPECT_TRUE(own);
}

TEST(ThreadPool, CallersTakeTurns) {
  ThreadPool pool(3);
  std::atomic<int> inside{0};
  std::vector<int> sums(4);
  std::vector<std::thread> callers;
  for (std::size_t caller = 0; caller < 4; ++caller)
    callers.emplace_back([&, caller] {
      for (int round = 0; round < 100; ++round) {
        std::atomic<int> done{0};
        pool.Run(5, [&](int) {
          ++inside;
          ++done;
          --inside;
        });
        sums[caller] += done;
      }
    });
  for (std::thread& thread : callers) thread.join();
  EXPECT_EQ(sums, std::vector<int>(4, 500));
}

TEST(ThreadPool, RunsTasksAtTheSameTime) {
  ThreadPool pool(2);
  std::atomic<int> arrived{0};
  pool.Run(2, [&](int) {  // each waits for the other: only possible on two threads
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 2);
}

TEST(InlineExecutor, RunsTasksInOrderOnTheCallersThread) {
  InlineExecutor executor;
  std::vector<int> order;
  std::set<std::thread::id> threads;
  executor.Run(5, [&](int task) {
    order.push_back(task);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(threads, std::set{std::this_thread::get_id()});
}

TEST(ThreadPoolDeathTest, SaysSoWhenATaskCallsRunOnItsOwnPool) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        ThreadPool pool(2);
        pool.Run(1, [&](int) { pool.Run(1, [](int) {}); });
      },
      "CHECK failed");
}

}  // namespace
}  // namespace freshet::base
