#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "deploy/samplers/sampler_testing.h"

namespace freshet::deploy {
namespace {

// The law, straight from its words: chances halve with every half_life * end rows of age and add up to `count`; those
// above 1 become 1 and the others take up what is left.
std::vector<double> ChancesByAge(double half_life, std::uint64_t end, std::uint64_t count) {
  std::vector<double> chances(end);
  for (std::uint64_t certain = 0;; ++certain) {
    for (std::uint64_t age = 0; age < end; ++age)
      chances[age] = std::exp2(-static_cast<double>(age) / (half_life * static_cast<double>(end)));
    std::fill_n(chances.begin(), certain, 1.0);
    const double sum = std::accumulate(chances.begin() + static_cast<std::ptrdiff_t>(certain), chances.end(), 0.0);
    for (std::uint64_t age = certain; age < end; ++age) chances[age] *= static_cast<double>(count - certain) / sum;
    if (certain == count || chances[certain] <= 1) return chances;
  }
}

TEST(RecentSampler, DrawsEachRowWithTheChanceTheLawGivesIt) {
  constexpr int kDraws = 20'000;
  constexpr std::uint64_t kEnd = 60;
  for (const double half_life : {0.05, 0.25, 1.0, 1000.0})
    for (const std::uint64_t count : {1, 6, 20, 50, 59}) {
      SCOPED_TRACE(Str("half-life ", half_life, ", count ", count));
      const auto sampler = NewSampler({.kind = "recent", .half_life = half_life});
      base::Random random(count, "recent");
      std::vector<double> drawn(kEnd);
      for (int i = 0; i < kDraws; ++i)
        for (const std::uint64_t number : Drawn(*sampler, kEnd, count, random)) ++drawn[kEnd - 1 - number];
      const std::vector<double> chances = ChancesByAge(half_life, kEnd, count);
      for (std::uint64_t age = 0; age < kEnd; ++age) {
        const double mean = kDraws * chances[age], deviation = std::sqrt(mean * std::max(0.0, 1 - chances[age]));
        EXPECT_NEAR(drawn[age], mean, 5 * deviation + 1) << "age " << age;
      }
    }
}

TEST(RecentSampler, HalvesTheChanceAfterTheShareOfTheHistoryItWasTold) {
  constexpr std::uint64_t kEnd = 1'000'000;
  for (const double half_life : {0.1, 0.25, 0.5}) {
    SCOPED_TRACE(Str("half-life ", half_life));
    base::Random random(7, "halves");
    const auto numbers = Drawn(*NewSampler({.kind = "recent", .half_life = half_life}), kEnd, 20'000, random);
    const auto between = [&](double young, double old) {
      return static_cast<double>(std::count_if(numbers.begin(), numbers.end(), [&](std::uint64_t number) {
        const double age = static_cast<double>(kEnd - 1 - number) / kEnd;
        return age >= young && age < old;
      }));
    };
    EXPECT_NEAR(between(half_life, 2 * half_life) / between(0, half_life), 0.5, 0.03);
  }
}

}  // namespace
}  // namespace freshet::deploy
