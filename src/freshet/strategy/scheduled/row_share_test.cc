#include "strategy/scheduled/row_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

namespace freshet::strategy::scheduled {
namespace {

using Rows = std::vector<std::uint32_t>;
constexpr double kNever = std::numeric_limits<double>::infinity();

Rows Numbers(std::uint32_t count) {
  Rows rows(count);
  for (std::uint32_t i = 0; i < count; ++i) rows[i] = i;
  return rows;
}

TEST(RowShare, ThoseThatChangedMostComeFirst) {
  RowShare share(Numbers(100), Share::Order::kRecent, 3);
  std::vector<double> changes(100, 0.001);
  changes[7] = 3;
  changes[41] = 1;
  changes[80] = 2;
  const Rows next = share.Next(3, changes);
  EXPECT_EQ(next.size(), 3u);
  int found = 0;
  for (const std::uint32_t row : {7, 41, 80}) found += std::count(next.begin(), next.end(), row) > 0 ? 1 : 0;
  EXPECT_GE(found, 2);  // one place may be the sweep's
}

TEST(RowShare, WhoHadNoTurnYetComesBeforeAllOthers) {
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    RowShare share(Numbers(40), Share::Order::kRecent, seed);
    std::vector<double> changes(40, kNever);
    std::set<std::uint32_t> had;
    int turns = 0;
    for (; had.size() < 40; ++turns) {
      ASSERT_LT(turns, 10);
      for (const std::uint32_t row : share.Next(8, changes)) {
        had.insert(row);
        changes[row] = 1000;
      }
    }
    EXPECT_LE(turns, 6);  // of which five would do without sweeps
  }
}

TEST(RowShare, NobodyIsForgottenHoweverMuchOthersChange) {
  RowShare share(Numbers(64), Share::Order::kRecent, 5);
  std::vector<double> changes(64, 0);
  for (std::uint32_t row = 0; row < 8; ++row) changes[row] = 1;
  std::set<std::uint32_t> had;
  for (int turn = 0; turn < 80; ++turn)
    for (const std::uint32_t row : share.Next(8, changes)) had.insert(row);
  EXPECT_EQ(had.size(), 64u);
}

TEST(RowShare, InRandomOrderAllComeByOnceBeforeAnyComesAgain) {
  RowShare share(Numbers(30), Share::Order::kRandom, 7);
  const std::vector<double> changes(30, kNever);
  Rows before;
  for (int round = 0; round < 5; ++round) {
    Rows all;
    for (int turn = 0; turn < 5; ++turn) {
      const Rows next = share.Next(6, changes);
      all.insert(all.end(), next.begin(), next.end());
    }
    EXPECT_NE(all, before);
    before = all;
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, Numbers(30));
  }
}

TEST(RowShare, NoRowIsThereTwiceAndMorePlacesThanRowsAreAllRows) {
  for (const Share::Order order : {Share::Order::kRecent, Share::Order::kRandom})
    for (std::uint32_t count = 0; count < 12; ++count) {
      RowShare share(Numbers(count), order, count);
      const std::vector<double> changes(count, 1);
      for (std::uint64_t places = 0; places < 20; ++places) {
        const Rows next = share.Next(places, changes);
        EXPECT_TRUE(std::is_sorted(next.begin(), next.end()));
        EXPECT_TRUE(std::adjacent_find(next.begin(), next.end()) == next.end());
        EXPECT_LE(next.size(), std::min<std::uint64_t>(places, count));
      }
    }
}

}  // namespace
}  // namespace freshet::strategy::scheduled
