#include "strategy/scheduled/share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

namespace freshet::strategy::scheduled {
namespace {

std::vector<std::uint32_t> Coordinates(std::uint32_t count) {
  std::vector<std::uint32_t> coordinates(count);
  std::iota(coordinates.begin(), coordinates.end(), 100);
  return coordinates;
}

TEST(Share, AllAreUpdatedOnceBeforeAnyIsAgain) {
  for (const auto order : {Share::Order::kRecent, Share::Order::kRandom})
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      SCOPED_TRACE(seed);
      Share share(Coordinates(30), order, seed);
      std::map<std::uint32_t, int> times;
      for (int turn = 0; turn < 30; ++turn) {
        const auto entry = share.Next();
        ASSERT_TRUE(entry);
        ++times[entry->coordinate];
        share.Updated(*entry, 1.0 / (turn + 1));
      }
      // Who comes by in the sweep may have been updated before.
      EXPECT_GE(times.size(), order == Share::Order::kRandom ? 30u : 26u);
    }
}

TEST(Share, WhatChangedMostComesNextAndNoneIsForgotten) {
  Share share(Coordinates(12), Share::Order::kRecent, 3);
  std::map<std::uint32_t, int> times;
  for (int turn = 0; turn < 480; ++turn) {
    const auto entry = share.Next();
    ASSERT_TRUE(entry);
    ++times[entry->coordinate];
    share.Updated(*entry, entry->coordinate == 105 ? 5 : 0);  // it never comes to rest
  }
  for (const std::uint32_t coordinate : Coordinates(12)) EXPECT_GE(times[coordinate], 5) << coordinate;
  EXPECT_GE(times[105], 400);
}

TEST(Share, ALapHasWhatChangedThoseThatChangedMostFirstEachOnce) {
  Share share(Coordinates(6), Share::Order::kRecent, 5);
  std::map<std::uint32_t, int> times;
  std::vector<std::uint32_t> turns;
  for (int turn = 0; turn < 60; ++turn) {
    const auto entry = share.Next();
    ASSERT_TRUE(entry);
    turns.push_back(entry->coordinate);
    ++times[entry->coordinate];
    share.Updated(*entry, entry->coordinate < 103 ? entry->coordinate : 0);
  }
  // From the second lap on, 102, 101, 100 and again, with a sweep between now and then.
  EXPECT_NEAR(times[102], times[100], 3);
  EXPECT_NEAR(times[102], times[101], 3);
  EXPECT_GE(times[102], 15);
  EXPECT_LE(times[103], 5);
  int falling = 0;
  for (std::size_t turn = 20; turn + 1 < turns.size(); ++turn) falling += turns[turn] == turns[turn + 1] + 1 ? 1 : 0;
  EXPECT_GE(falling, 18);
}

TEST(Share, WhatIsOutIsNotProposedAgainAndWhatWasPutOffIsAsItWas) {
  Share share(Coordinates(3), Share::Order::kRecent, 1);
  const auto first = share.Next(), second = share.Next(), third = share.Next();
  ASSERT_TRUE(first && second && third);
  EXPECT_FALSE(share.Next());
  EXPECT_NE(first->coordinate, second->coordinate);
  EXPECT_NE(first->coordinate, third->coordinate);
  share.PutOff(*second);
  const auto again = share.Next();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->coordinate, second->coordinate);
  EXPECT_EQ(again->priority, second->priority);
  EXPECT_EQ(again->waited, 1u);  // and comes before those that did not wait
  EXPECT_TRUE(*again < *first);
  EXPECT_FALSE(Share({}, Share::Order::kRandom, 1).Next());
}

TEST(Share, RandomOrderIsDrawnAnewEachTimeRound) {
  Share share(Coordinates(20), Share::Order::kRandom, 7);
  std::vector<std::vector<std::uint32_t>> rounds(3);
  for (auto& round : rounds)
    for (int turn = 0; turn < 20; ++turn) {
      const auto entry = share.Next();
      ASSERT_TRUE(entry);
      round.push_back(entry->coordinate);
      share.Updated(*entry, 1);
    }
  EXPECT_NE(rounds[0], rounds[1]);
  EXPECT_NE(rounds[1], rounds[2]);
  for (auto& round : rounds) {
    std::sort(round.begin(), round.end());
    EXPECT_EQ(round, Coordinates(20));
  }
}

}  // namespace
}  // namespace freshet::strategy::scheduled
