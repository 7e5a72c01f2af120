#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "base/str.h"

namespace freshet::base {
namespace {

using Block = std::array<std::uint32_t, 4>;

TEST(Philox, GivesTheKnownAnswersOfItsAuthors) {
  // From kat_vectors of the Random123 distribution, philox4x32 with 10 rounds.
  EXPECT_EQ(Philox(0, 0, 0), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox(~0ull, ~0ull, ~0ull), (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox(0x299f31d0'a4093822, 0x03707344'13198a2e, 0x85a308d3'243f6a88),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, IsTheSameStreamForTheSameNamesAndAnotherForOthers) {
  Random a(1, "shuffle"), same(1, "shuffle"), other_seed(2, "shuffle"), other_name(1, "split");
  int equal_seed = 0, equal_name = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t number = a.Next();
    ASSERT_EQ(number, same.Next());
    equal_seed += number == other_seed.Next();
    equal_name += number == other_name.Next();
  }
  EXPECT_EQ(equal_seed + equal_name, 0);
}

TEST(Random, GoesOnFromAnyPositionAsIfItHadNeverStopped) {
  std::vector<std::uint64_t> numbers;
  Random whole(7, 3);
  for (int i = 0; i < 100; ++i) numbers.push_back(whole.Next());
  for (std::uint64_t at = 0; at < 100; ++at) {
    SCOPED_TRACE(Str("position ", at));
    Random part(7, 3);
    part.Seek(at);
    ASSERT_EQ(part.Next(), numbers[at]);
    ASSERT_EQ(part.position(), at + 1);
  }
}

TEST(Random, BelowIsUniform) {
  for (const std::uint64_t end : {1, 2, 3, 7, 10, 64}) {
    SCOPED_TRACE(Str("end ", end));
    Random random(11, end);
    std::vector<double> counts(end);
    constexpr int kDraws = 64'000;
    for (int i = 0; i < kDraws; ++i) {
      const std::uint64_t drawn = random.Below(end);
      ASSERT_LT(drawn, end);
      ++counts[drawn];
    }
    double chi_squared = 0;
    const double expected = kDraws / static_cast<double>(end);
    for (const double count : counts) chi_squared += (count - expected) * (count - expected) / expected;
    const auto freedom = static_cast<double>(end - 1);
    EXPECT_LT(chi_squared, freedom + 5 * std::sqrt(2 * freedom) + 1e-9);
  }
}

TEST(Random, UniformFillsItsRangeEvenly) {
  Random random(5, "uniform");
  double sum = 0, least = 1, most = 0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    const double number = random.Uniform();
    sum += number;
    least = std::min(least, number);
    most = std::max(most, number);
  }
  EXPECT_GE(least, 0.0);
  EXPECT_LT(most, 1.0);
  EXPECT_NEAR(sum / kDraws, 0.5, 5 * std::sqrt(1.0 / 12 / kDraws));
  EXPECT_LT(least, 1e-3);
  EXPECT_GT(most, 1 - 1e-3);
}

TEST(Random, NormalHasTheMomentsOfANormal) {
  Random random(5, "normal");
  constexpr int kDraws = 200'000;
  double sums[5] = {};
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.Normal();
    ASSERT_TRUE(std::isfinite(x));
    for (int power = 1; power <= 4; ++power) sums[power] += std::pow(x, power);
  }
  EXPECT_NEAR(sums[1] / kDraws, 0, 0.02);
  EXPECT_NEAR(sums[2] / kDraws, 1, 0.02);
  EXPECT_NEAR(sums[3] / kDraws, 0, 0.05);
  EXPECT_NEAR(sums[4] / kDraws, 3, 0.1);
}

TEST(Hash64, IsTheSameForEver) {
  // Models saved with hashed features depend on these.
  EXPECT_EQ(Hash64(std::uint64_t{0}), 0xe220a8397b1dcdafu);  // splitmix64, seed 0
  EXPECT_EQ(Hash64(""), 0xe220a8397b1dcdafu);
  EXPECT_EQ(Hash64("a"), Hash64(Hash64(std::uint64_t{1}) ^ 0x61));
  EXPECT_EQ(Hash64("abcdefgh"), Hash64(Hash64(std::uint64_t{8}) ^ 0x6867666564636261));
}

TEST(Hash64, SpreadsTextsThatDifferLittle) {
  std::set<std::uint64_t> seen, low_bits;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t hash = Hash64(Str("user", i));
    seen.insert(hash);
    low_bits.insert(hash & 0xfffff);
  }
  EXPECT_EQ(seen.size(), 20'000u);
  EXPECT_GT(low_bits.size(), 19'700u);  // 20,000 in 2^20 places: about 190 collide
  EXPECT_NE(Hash64("a", 1), Hash64("a", 2));
  EXPECT_NE(Hash64(std::string_view("\0", 1)), Hash64(std::string_view("\0\0", 2)));
}

}  // namespace
}  // namespace freshet::base
