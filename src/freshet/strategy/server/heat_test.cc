#include "strategy/server/heat.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "base/random.h"
#include "base/str.h"

namespace freshet::strategy::server {
namespace {

using Way = Heat::Way;

TEST(Heat, CountsBytesByRangesAsTheyCame) {
  constexpr std::uint64_t kRows = 90, kRangeRows = 25, kWidth = 3;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "heat");
    Heat heat({.range_rows = {1, kRangeRows}, .every = 1}, 2);
    std::map<std::uint64_t, std::uint64_t> ranges;  // the model
    std::uint64_t bytes[2] = {0, 0};
    for (int letter = 0; letter < 40; ++letter) {
      const Way way = random.Below(2) == 0 ? Way::kPulled : Way::kPushed;
      std::vector<std::uint32_t> rows;
      if (random.Below(2) == 0) {
        for (std::uint32_t row = 0; row < kRows; ++row)
          if (random.Below(6) == 0) rows.push_back(row);
        if (!rows.empty()) heat.Rows(way, 1, rows, rows.size() * kWidth * 4);
      } else {
        rows.resize(1 + random.Below(kRows));
        std::iota(rows.begin(), rows.end(), static_cast<std::uint32_t>(random.Below(kRows - rows.size() + 1)));
        heat.Stretch(way, 1, rows[0], rows.size(), rows.size() * kWidth * 4);
      }
      for (const std::uint32_t row : rows) ranges[row / kRangeRows] += kWidth * 4;
      bytes[static_cast<int>(way)] += rows.size() * kWidth * 4;
    }
    const Report::Block told = heat.Tell(1, kRows);
    EXPECT_EQ(told.pulled, bytes[0]);
    EXPECT_EQ(told.pushed, bytes[1]);
    ASSERT_EQ(told.busiest.size(), ranges.size());
    for (std::size_t i = 0; i < told.busiest.size(); ++i) {
      const Report::Range& range = told.busiest[i];
      EXPECT_NEAR(static_cast<double>(range.bytes), static_cast<double>(ranges[range.first / kRangeRows]), 1);
      EXPECT_EQ(range.last, std::min(range.first + kRangeRows, kRows));
      if (i > 0) EXPECT_GE(told.busiest[i - 1].bytes, range.bytes);
    }
    EXPECT_EQ(heat.Tell(0, kRows).pulled + heat.Tell(0, kRows).pushed, 0u);
  }
}

// Whatever comes in between, and in whatever order.
TEST(Heat, HasEveryRowThatComesOftenAndSaysNoMoreOfItThanCame) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "heat");
    Heat heat({.every = 1, .counters = 10}, 1);
    std::map<std::uint64_t, std::uint64_t> count;
    constexpr int kSeen = 4000;
    for (int i = 0; i < kSeen; ++i) {
      // One row in six is one of three, the others come once each or are drawn from a few.
      const std::uint64_t kind = random.Below(6);
      const std::uint32_t row = kind == 0  ? static_cast<std::uint32_t>(7 + i % 3)
                                : kind < 4 ? 1000 + static_cast<std::uint32_t>(i)
                                           : 100 + static_cast<std::uint32_t>(random.Below(50));
      heat.Rows(Way::kPulled, 0, std::span(&row, 1), 4);
      ++count[row];
    }
    const Report::Block told = heat.Tell(0, 10'000);
    for (const Report::Row& each : told.hottest) EXPECT_LE(each.bytes, 4 * count[each.row]);
    for (const auto& [row, times] : count)
      if (times > kSeen / 10)
        EXPECT_TRUE(std::any_of(told.hottest.begin(), told.hottest.end(), [&](auto& each) { return each.row == row; }));
  }
}

TEST(Heat, FindsAHotRowOfMillionsThoughItLooksAtFew) {
  base::Random random(1, "heat");
  Heat heat({.range_rows = {1 << 16}}, 1);
  std::uint64_t hot = 0, all = 0;
  std::vector<std::uint32_t> rows;
  for (int letter = 0; letter < 20'000; ++letter) {
    rows.assign({77});
    for (std::uint64_t i = random.Below(40); i > 0; --i)
      rows.push_back(static_cast<std::uint32_t>(random.Below(1 << 22)));
    heat.Rows(letter % 2 == 0 ? Way::kPulled : Way::kPushed, 0, rows, rows.size() * 4);
    hot += 4;
    all += rows.size() * 4;
  }
  const Report::Block told = heat.Tell(0, 1 << 22);
  EXPECT_EQ(told.pulled + told.pushed, all);
  ASSERT_GE(told.hottest.size(), 1u);
  EXPECT_EQ(told.hottest[0].row, 77u);
  EXPECT_NEAR(static_cast<double>(told.hottest[0].bytes), static_cast<double>(hot), 0.35 * static_cast<double>(hot));
  EXPECT_EQ(told.busiest[0].first, 0u);
}

}  // namespace
}  // namespace freshet::strategy::server
