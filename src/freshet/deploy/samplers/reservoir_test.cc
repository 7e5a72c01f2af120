#include <gtest/gtest.h>

#include "deploy/samplers/sampler_testing.h"

namespace freshet::deploy {
namespace {

TEST(ReservoirSampler, HoldsEachRowWithTheSameChance) {
  constexpr std::uint64_t kRows = 12, kHeld = 3;  // few, so that one too many or too few would show
  constexpr int kSeeds = 10'000;
  std::vector<double> held(kRows);
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto sampler = NewSampler({.kind = "reservoir", .reservoir_rows = kHeld}, seed);
    for (std::uint64_t number = 0; number < kRows; ++number) sampler->Observe(number, 0);
    base::Random random(seed, "all");
    const auto numbers = Drawn(*sampler, kRows, kRows, random);
    ASSERT_EQ(numbers.size(), kHeld);
    for (const std::uint64_t number : numbers) ++held[number];
  }
  const std::vector<double> expected(kRows, kSeeds * double{kHeld} / kRows);
  EXPECT_LT(ChiSquareExcess(held, expected, kRows - kHeld), kUnlikely);
}

TEST(ReservoirSampler, IsTheSameForTheSameRowsAndSeedWhateverWasDrawnMeanwhile) {
  const auto drawn_from = NewSampler({.kind = "reservoir", .reservoir_rows = 10}, 3),
             left_alone = NewSampler({.kind = "reservoir", .reservoir_rows = 10}, 3);
  base::Random random(1, "meanwhile");
  for (std::uint64_t number = 0; number < 500; ++number) {
    drawn_from->Observe(number, 1);
    left_alone->Observe(number, 1);
    Drawn(*drawn_from, number, 3, random);
  }
  EXPECT_EQ(drawn_from->Save(), left_alone->Save());
}

TEST(ReservoirSampler, StopsWhenARowIsObservedTwice) {
  const auto sampler = NewSampler({.kind = "reservoir"});
  sampler->Observe(4, 0);
  EXPECT_DEATH(sampler->Observe(4, 0), "number >= next_");
}

}  // namespace
}  // namespace freshet::deploy
