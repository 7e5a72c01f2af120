#include "deploy/samplers/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "deploy/samplers/sampler_testing.h"

namespace freshet::deploy {
namespace {

// A sampler with small options that has observed `rows` rows.
std::unique_ptr<Sampler> Observed(const std::string& kind, std::uint64_t rows, std::uint64_t seed) {
  auto sampler = NewSampler({.kind = kind, .reservoir_rows = 40, .window_rows = 30, .half_life = 0.2}, seed);
  base::Random random(seed, "losses");
  for (std::uint64_t number = 0; number < rows; ++number) sampler->Observe(number, 0.01 + random.Uniform());
  return sampler;
}

// How many rows a sampler of that kind can give.
std::uint64_t Most(const std::string& kind, std::uint64_t end) {
  if (kind == "none") return 0;
  if (kind == "window") return std::min<std::uint64_t>(end, 30);
  if (kind == "reservoir" || kind == "hard") return std::min<std::uint64_t>(end, 40);
  return end;
}

TEST(Sampler, KnowsItsKindsAndSaysAllThatIsWrongWithOptions) {
  for (const std::string& kind : Sampler::Kinds()) EXPECT_EQ(NewSampler({.kind = kind})->name(), kind);
  const auto wrong = Sampler::Make({.kind = "uniforn", .window_rows = 0, .half_life = 0}, 1);
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code, Code::kInvalid);
  for (const char* const part : {"'uniforn'", "reservoir, hard, none", "window_rows 0", "half_life 0"})
    EXPECT_NE(wrong.error().text.find(part), std::string::npos) << wrong.error().text;
}

TEST(Sampler, DrawsDifferentNumbersBelowTheEndAndFewerOnlyWhenThereAreFewer) {
  std::vector<std::uint64_t> numbers = {7};  // what was there before is replaced
  for (const std::string& kind : Sampler::Kinds())
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      base::Random random(seed, "draws");
      const std::uint64_t end = random.Below(seed % 2 == 0 ? 8 : 200), count = random.Below(2 * end + 2);
      SCOPED_TRACE(Str(kind, ", seed ", seed, ", ", count, " of ", end));
      Observed(kind, end, seed)->Draw(end, count, random, numbers);
      ASSERT_EQ(numbers.size(), std::min(count, Most(kind, end)));
      ASSERT_EQ(std::set(numbers.begin(), numbers.end()).size(), numbers.size());
      for (const std::uint64_t number : numbers) ASSERT_LT(number, end);
    }
}

TEST(Sampler, LeavesOutRowsObservedAfterTheEnd) {
  for (const std::string& kind : Sampler::Kinds()) {
    SCOPED_TRACE(kind);
    const auto sampler = Observed(kind, 40, 1);  // fits the reservoirs, so that all rows are held
    base::Random random(1, "draws");
    for (std::uint64_t end = 0; end <= 40; ++end) {
      const auto numbers = Drawn(*sampler, end, 100, random);
      ASSERT_EQ(numbers.size(), Most(kind, end));
      for (const std::uint64_t number : numbers) ASSERT_LT(number, end);
    }
  }
}

TEST(Sampler, DrawsInRandomOrder) {
  for (const std::string& kind : Sampler::Kinds()) {
    if (kind == "none") continue;
    SCOPED_TRACE(kind);
    const auto sampler = Observed(kind, 40, 2);
    base::Random random(2, "order");
    // Of any draw, each place is as likely to hold the least number.
    std::vector<double> least_at(5);
    constexpr int kDraws = 5000;
    for (int i = 0; i < kDraws; ++i) {
      const auto numbers = Drawn(*sampler, 40, 5, random);
      ++least_at[static_cast<std::size_t>(std::min_element(numbers.begin(), numbers.end()) - numbers.begin())];
    }
    EXPECT_LT(ChiSquareExcess(least_at, std::vector<double>(5, kDraws / 5.0), 4), kUnlikely);
  }
}

TEST(Sampler, DrawsEveryRowOfTheHistoryOrTheWindowWithTheSameChance) {
  for (const std::string kind : {"uniform", "window"})
    for (const std::uint64_t count : {1, 5, 17}) {
      SCOPED_TRACE(Str(kind, ", count ", count));
      const auto sampler = Observed(kind, 50, 1);
      base::Random random(count, "uniform");
      const std::uint64_t most = Most(kind, 50);
      std::vector<double> drawn(50);
      constexpr int kDraws = 4000;
      for (int i = 0; i < kDraws; ++i)
        for (const std::uint64_t number : Drawn(*sampler, 50, count, random)) ++drawn[number];
      for (std::uint64_t old = 0; old < 50 - most; ++old) ASSERT_EQ(drawn[old], 0);
      drawn.erase(drawn.begin(), drawn.end() - static_cast<std::ptrdiff_t>(most));
      const std::vector<double> expected(most, kDraws * static_cast<double>(count) / static_cast<double>(most));
      // Without replacement the counts vary less by this factor.
      const double freedom = static_cast<double>(most - count);
      EXPECT_LT(ChiSquareExcess(drawn, expected, freedom), kUnlikely);
    }
}

TEST(Sampler, DrawsFromAHistoryOfAnyLengthAtOnce) {
  constexpr std::uint64_t kEnd = std::uint64_t{1} << 50;  // proportional to this it would never end
  for (const std::string kind : {"uniform", "recent"}) {
    SCOPED_TRACE(kind);
    base::Random random(3, "long");
    const auto numbers = Drawn(*NewSampler({.kind = kind}), kEnd, 1000, random);
    ASSERT_EQ(std::set(numbers.begin(), numbers.end()).size(), 1000u);
    for (const std::uint64_t number : numbers) ASSERT_LT(number, kEnd);
  }
}

TEST(Sampler, GoesOnFromASavedStateAsIfItHadNeverStopped) {
  for (const std::string& kind : Sampler::Kinds())
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(Str(kind, ", seed ", seed));
      base::Random random(seed, "stops"), same = random;
      auto whole = Observed(kind, 0, seed), parts = Observed(kind, 0, seed);
      for (std::uint64_t number = 0; number < 300; ++number) {
        const double loss = random.Uniform();
        same.Seek(random.position());
        whole->Observe(number, loss);
        parts->Observe(number, loss);
        if (number % 37 == seed) {
          const auto state = parts->Save();
          parts = Observed(kind, 0, seed);
          ASSERT_TRUE(parts->Load(state));
        }
        ASSERT_EQ(Drawn(*whole, number + 1, 5, random), Drawn(*parts, number + 1, 5, same));
      }
      EXPECT_EQ(whole->Save(), parts->Save());
    }
}

TEST(Sampler, RefusesAStateThatDoesNotFitAndStaysAsItWas) {
  for (const std::string& kind : Sampler::Kinds()) {
    SCOPED_TRACE(kind);
    const auto sampler = Observed(kind, 100, 1);
    const auto state = sampler->Save();
    EXPECT_FALSE(sampler->Load(std::vector<std::uint64_t>{1}));
    if (!state.empty()) {
      auto shorter = state, other = state;
      shorter.pop_back();
      EXPECT_FALSE(sampler->Load(shorter));
      ++other[0];  // another size of the reservoir
      EXPECT_FALSE(sampler->Load(other));
      other = state;
      other.back() = 100;  // a row that never came
      EXPECT_FALSE(sampler->Load(other));
      EXPECT_FALSE(sampler->Load({}));
    }
    EXPECT_EQ(sampler->Save(), state);
  }
}

}  // namespace
}  // namespace freshet::deploy
