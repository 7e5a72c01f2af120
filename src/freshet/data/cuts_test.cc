#include "data/cuts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/random.h"
#include "base/str.h"

namespace freshet::data {
namespace {

// Rows that begin in each part of a file with lines of these lengths.
std::vector<double> Count(const Cuts& cuts, const std::vector<std::uint64_t>& lines) {
  std::vector<double> rows(cuts.size() - 1, 0);
  std::uint64_t at = 0;
  for (const std::uint64_t length : lines) {
    const auto part = std::upper_bound(cuts.begin(), cuts.end() - 1, at) - cuts.begin() - 1;
    rows[static_cast<std::size_t>(part)] += 1;
    at += length;
  }
  return rows;
}

TEST(Cuts, ByRowsAreInOrderKeepTheirEndsAndGiveEachPartAboutAsManyRows) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "cuts");
    std::vector<std::uint64_t> lines;
    for (std::uint64_t piece = 1 + random.Below(4); piece > 0; --piece)
      lines.resize(lines.size() + random.Below(5000), 1 + random.Below(200));
    const std::uint64_t bytes = std::accumulate(lines.begin(), lines.end(), std::uint64_t{0});
    const std::uint64_t parts = 1 + random.Below(8);
    RowsByPlace places(bytes, 64 * parts);
    std::uint64_t at = 0;
    for (std::size_t line = 0; line < lines.size();) {  // by blocks of lines, as a reader sees them
      const std::size_t block = std::min<std::size_t>(1 + random.Below(100), lines.size() - line);
      const auto begin = lines.begin() + static_cast<std::ptrdiff_t>(line);
      const std::uint64_t size = std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(block), std::uint64_t{0});
      places.Add(at, at + size, block);
      at += size;
      line += block;
    }
    const double counted = std::accumulate(places.rows().begin(), places.rows().end(), 0.0);
    EXPECT_NEAR(counted, static_cast<double>(lines.size()), 1e-6 * counted + 1e-9);
    const Cuts cuts = CutsByRows(bytes, places.rows(), parts);
    ASSERT_EQ(cuts.size(), parts + 1);
    ASSERT_TRUE(std::is_sorted(cuts.begin(), cuts.end()));
    ASSERT_EQ(cuts.front(), 0u);
    ASSERT_EQ(cuts.back(), bytes);
    EXPECT_LT(Imbalance(Count(cuts, lines)), lines.size() >= 1000 * parts ? 0.1 : 8.0);
  }
}

TEST(Cuts, OfLongRowsAndThenShortOnes) {
  std::vector<std::uint64_t> lines(1000, 90);  // half of the bytes
  lines.resize(1000 + 9000, 10);
  const Cuts even = EvenCuts(180'000, 4);
  EXPECT_NEAR(Imbalance(Count(even, lines)), 0.8, 0.01);  // 4,500 where the mean is 2,500
  RowsByPlace places(180'000, 4);
  places.Add(0, 90'000, 1000);
  places.Add(90'000, 180'000, 9000);
  EXPECT_LT(Imbalance(Count(CutsByRows(180'000, places.rows(), 4), lines)), 0.01);
}

TEST(Cuts, WithoutRowsAreEven) {
  EXPECT_EQ(EvenCuts(10, 3), (Cuts{0, 3, 6, 10}));
  EXPECT_EQ(CutsByRows(10, std::vector<double>{0, 0, 0, 0}, 3), EvenCuts(10, 3));
  EXPECT_EQ(Imbalance(std::vector<double>{0, 0, 0}), 0);
}

}  // namespace
}  // namespace freshet::data
