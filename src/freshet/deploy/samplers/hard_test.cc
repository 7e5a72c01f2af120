#include <gtest/gtest.h>

#include <limits>

#include "deploy/samplers/sampler_testing.h"

namespace freshet::deploy {
namespace {

// Without recency: half_life 1 makes every age count the same.
SamplerOptions Ageless(std::uint64_t held) { return {.kind = "hard", .reservoir_rows = held, .half_life = 1}; }

TEST(HardSampler, DrawsRowsInProportionToTheirLossWhetherItsReservoirIsFullOrNot) {
  constexpr std::uint64_t kRows = 40;
  constexpr int kSeeds = 400, kDraws = 50;
  for (const std::uint64_t held : {100, 20}) {
    SCOPED_TRACE(Str("held ", held));
    // Losses 1, 2, 3 and 4 in turn, ten rows each: shares of 10, 20, 30 and 40 % of single draws.
    std::vector<double> drawn(4);
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const auto sampler = NewSampler(Ageless(held), seed);
      for (std::uint64_t number = 0; number < kRows; ++number) sampler->Observe(number, 1.0 + number % 4);
      base::Random random(seed, "hard");
      for (int i = 0; i < kDraws; ++i) ++drawn[Drawn(*sampler, kRows, 1, random).at(0) % 4];
    }
    for (std::size_t i = 0; i < 4; ++i)
      EXPECT_NEAR(drawn[i] / (kSeeds * kDraws), (static_cast<double>(i) + 1) / 10, 0.02) << "loss " << i + 1;
  }
}

TEST(HardSampler, CountsARowHalfAsMuchAfterItsHalfLife) {
  constexpr std::uint64_t kRows = 1000;
  const auto sampler = NewSampler({.kind = "hard", .reservoir_rows = kRows, .half_life = 0.25});
  for (std::uint64_t number = 0; number < kRows; ++number) sampler->Observe(number, 0.5);
  base::Random random(1, "half");
  double newest = 0, older = 0;
  for (int i = 0; i < 3000; ++i)
    for (const std::uint64_t number : Drawn(*sampler, kRows, 1, random)) {
      newest += number >= 900;
      older += number >= 650 && number < 750;  // a quarter of the history before
    }
  // The law at the middle of both, 0.48: a little less than a half, since the middle of the newest is not the newest.
  EXPECT_NEAR(older / newest, std::pow(0.7 / 0.95, std::log(0.5) / std::log(0.75)), 0.1);
}

TEST(HardSampler, NeverDrawsRowsWithoutALoss) {
  const auto sampler = NewSampler({.kind = "hard"});
  const double losses[] = {0, -1, std::nan(""), std::numeric_limits<double>::infinity(), 2};
  for (std::uint64_t number = 0; number < 100; ++number) sampler->Observe(number, losses[number % 5]);
  base::Random random(1, "none");
  const auto numbers = Drawn(*sampler, 100, 100, random);
  EXPECT_EQ(numbers.size(), 20u);
  for (const std::uint64_t number : numbers) EXPECT_EQ(number % 5, 4u);
}

TEST(HardSampler, ForgetsOldRowsInALongHistoryHoweverSteepTheLaw) {
  for (const double half_life : {1e-9, 0.001, 0.1}) {
    SCOPED_TRACE(Str("half-life ", half_life));
    const auto sampler = NewSampler({.kind = "hard", .reservoir_rows = 50, .half_life = half_life});
    for (std::uint64_t number = 0; number < 20'000; ++number) sampler->Observe(number, number < 100 ? 100 : 0.1);
    base::Random random(1, "steep");
    const auto numbers = Drawn(*sampler, 20'000, 50, random);
    EXPECT_EQ(numbers.size(), 50u);
    for (const std::uint64_t number : numbers) EXPECT_GT(number, 100u);
  }
}

}  // namespace
}  // namespace freshet::deploy
