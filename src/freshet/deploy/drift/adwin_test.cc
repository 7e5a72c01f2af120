#include "deploy/drift/adwin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace freshet::deploy {
namespace {

TEST(Adwin, FindsAJumpInTheMeanAndStartsAnew) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "adwin");
    Adwin adwin;
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(adwin.Add(random.Uniform() < 0.1), Drift::kNone);
    EXPECT_EQ(adwin.rows(), 1000);
    int rows = 1;
    while (rows < 256 && adwin.Add(random.Uniform() < 0.5) != Drift::kDrift) ++rows;
    EXPECT_LT(rows, 256);
    EXPECT_EQ(adwin.rows(), 0);
  }
}

TEST(Adwin, ShrinksItsWindowSilentlyWhenTheMeanFalls) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "adwin");
    Adwin adwin;
    for (int i = 0; i < 1000; ++i) adwin.Add(random.Uniform() < 0.5);
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(adwin.Add(random.Uniform() < 0.1), Drift::kNone);
    EXPECT_GE(adwin.rows(), 700);
    EXPECT_LE(adwin.rows(), 1100);
  }
}

TEST(Adwin, FindsARiseThatFollowsAFall) {
  base::Random random(5, "adwin");
  Adwin adwin;
  const auto alarms = [&](int rows, double chance) {
    int count = 0;
    for (int i = 0; i < rows; ++i) count += adwin.Add(random.Uniform() < chance) == Drift::kDrift;
    return count;
  };
  EXPECT_EQ(alarms(1000, 0.5), 0);
  EXPECT_EQ(alarms(500, 0.1), 0);
  EXPECT_EQ(alarms(500, 0.5), 1);
}

TEST(Adwin, TakesMemoryForTheLogarithmOfItsWindow) {
  Adwin adwin;
  for (int i = 0; i < 100'000; ++i) ASSERT_EQ(adwin.Add(0.25), Drift::kNone);
  EXPECT_EQ(adwin.rows(), 100'000);
  EXPECT_LE(adwin.buckets(), 5u * 17);
}

TEST(Adwin, SummarisesExactlyTheNewestErrorsInItsBuckets) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "buckets");
    Adwin adwin;
    std::vector<double> errors;
    const std::uint64_t rows = random.Below(3000);
    for (std::uint64_t i = 0; i < rows; ++i) {
      errors.push_back(random.Uniform() + (i < rows / 2 ? 0.5 : 0));
      ASSERT_EQ(adwin.Add(errors.back()), Drift::kNone);
    }
    const std::vector<double> state = adwin.Save();  // the check's clock, then count, mean, squares, low, high of each
    ASSERT_EQ(state.size(), 1 + 5 * adwin.buckets());
    auto begin = errors.end() - static_cast<std::ptrdiff_t>(adwin.rows());
    for (std::size_t b = 1; b < state.size(); b += 5) {
      const auto end = begin + static_cast<std::ptrdiff_t>(state[b]);
      ASSERT_LE(end - errors.begin(), static_cast<std::ptrdiff_t>(errors.size()));
      ErrorMoments moments;
      std::for_each(begin, end, [&](double error) { moments.Add(error); });
      EXPECT_NEAR(state[b + 1], moments.mean, 1e-12);
      EXPECT_NEAR(state[b + 2], moments.squares, 1e-9);
      EXPECT_EQ(state[b + 3], *std::min_element(begin, end));
      EXPECT_EQ(state[b + 4], *std::max_element(begin, end));
      begin = end;
    }
    EXPECT_EQ(begin, errors.end());
  }
}

}  // namespace
}  // namespace freshet::deploy
