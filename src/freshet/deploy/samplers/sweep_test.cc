#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "deploy/samplers/sampler_testing.h"

namespace freshet::deploy {
namespace {

std::unique_ptr<Sampler> Sweep(std::uint64_t seed) { return NewSampler({.kind = "sweep"}, seed); }

TEST(SweepSampler, DrawsEveryRowOnceBeforeAnyTwiceWhileRowsCome) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "test");
    const auto sampler = Sweep(seed);
    std::map<std::uint64_t, int> times;  // drawn, in this sweep
    std::uint64_t end = 1 + random.Below(300);
    for (int draw = 0; draw < 200; ++draw) {
      std::uint64_t left = 0;
      for (std::uint64_t number = 0; number < end; ++number) left += times[number] == 0;
      const std::uint64_t count = random.Below(20);
      const auto numbers = Drawn(*sampler, end, count, random);
      ASSERT_EQ(numbers.size(), std::min(count, end));
      ASSERT_EQ(std::set(numbers.begin(), numbers.end()).size(), numbers.size());
      std::uint64_t fresh = 0;
      for (const std::uint64_t number : numbers) fresh += times[number] == 0;
      ASSERT_EQ(fresh, std::min<std::uint64_t>(left, numbers.size()));
      if (left < numbers.size()) break;  // a new sweep has begun
      for (const std::uint64_t number : numbers) ++times[number];
      end += random.Below(5);
    }
  }
}

TEST(SweepSampler, GivesEveryRowTheSameChanceAtEveryPlace) {
  for (const std::uint64_t rows : {2, 3, 7, 10, 33}) {
    std::vector<double> first(rows), last(rows);
    constexpr int kSeeds = 4000;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const auto sampler = Sweep(seed);
      base::Random random(seed, "chance");
      std::vector<std::uint64_t> order;
      for (std::uint64_t i = 0; i < rows; ++i) order.push_back(Drawn(*sampler, rows, 1, random)[0]);
      ++first[order.front()];
      ++last[order.back()];
    }
    const std::vector<double> expected(rows, static_cast<double>(kSeeds) / static_cast<double>(rows));
    EXPECT_LT(ChiSquareExcess(first, expected, static_cast<double>(rows - 1)), kUnlikely) << rows;
    EXPECT_LT(ChiSquareExcess(last, expected, static_cast<double>(rows - 1)), kUnlikely) << rows;
  }
}

TEST(SweepSampler, TakesFromNewRowsAndOldOnesInProportionToWhatIsLeft) {
  double new_rows = 0;
  constexpr int kSeeds = 500;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto sampler = Sweep(seed);
    base::Random random(seed, "shares");
    (void)Drawn(*sampler, 100, 60, random);  // 40 are left
    const auto numbers = Drawn(*sampler, 110, 5, random);
    new_rows += static_cast<double>(std::count_if(numbers.begin(), numbers.end(), [](auto n) { return n >= 100; }));
  }
  EXPECT_NEAR(new_rows / kSeeds, 5 * 10.0 / 50, 0.1);
}

TEST(SweepSampler, GoesOnAfterLoadAsItWouldHave) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto sampler = Sweep(seed), other = Sweep(seed);
    base::Random random(seed, "load");
    std::uint64_t end = 50;
    for (int draw = 0; draw < 30; ++draw, end += 3) (void)Drawn(*sampler, end, random.Below(20), random);
    ASSERT_TRUE(other->Load(sampler->Save()));
    base::Random copy = random;
    for (int draw = 0; draw < 30; ++draw, end += 3)
      ASSERT_EQ(Drawn(*sampler, end, 10, random), Drawn(*other, end, 10, copy));
  }
}

TEST(SweepSampler, RefusesWhatItCannotHaveSaved) {
  const auto sampler = Sweep(1);
  base::Random random(1, "state");
  (void)Drawn(*sampler, 10, 4, random);
  (void)Drawn(*sampler, 15, 4, random);
  const auto state = sampler->Save();
  ASSERT_EQ(state.size(), 8u);  // the seed, the sweep, and twice begin, end and how many were taken
  EXPECT_TRUE(sampler->Load(state));
  EXPECT_FALSE(Sweep(2)->Load(state));
  for (const auto& [place, wrong] :
       std::vector<std::pair<std::size_t, std::uint64_t>>{{2, 10}, {4, 11}, {5, 9}, {7, 6}}) {
    auto other = state;
    other[place] = wrong;
    EXPECT_FALSE(sampler->Load(other)) << place;
  }
  EXPECT_EQ(sampler->Save(), state);
}

TEST(Sampler, ForgetsRowsOfEveryKind) {
  for (const std::string& kind : Sampler::Kinds()) {
    if (kind == "none") continue;
    for (const std::uint64_t begin : {0, 3, 60, 95, 100}) {
      SCOPED_TRACE(Str(kind, " from ", begin));
      const auto sampler = NewSampler({.kind = kind, .window_rows = 50, .half_life = 0.2});
      for (std::uint64_t number = 0; number < 100; ++number) sampler->Observe(number, 1);
      base::Random random(begin, "forget");
      (void)Drawn(*sampler, 100, 30, random);
      sampler->Forget(begin);
      std::set<std::uint64_t> seen;
      for (int draw = 0; draw < 60; ++draw) {
        const auto numbers = Drawn(*sampler, 100, 10, random);
        ASSERT_EQ(numbers.size(), std::min<std::uint64_t>(10, 100 - begin));
        seen.insert(numbers.begin(), numbers.end());
      }
      if (begin < 100) {
        EXPECT_GE(*seen.begin(), begin);
        EXPECT_GT(seen.size(), (100 - begin) / 3);
      }
    }
  }
}

}  // namespace
}  // namespace freshet::deploy
