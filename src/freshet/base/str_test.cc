#include "base/str.h"

#include <gtest/gtest.h>

#include <charconv>
#include <random>

#include "base/random.h"

namespace freshet {
namespace {

TEST(Str, JoinsTextAndNumbers) {
  EXPECT_EQ(Str("rank ", 3, " of ", 7u, ' ', std::string("lost"), ", ", true), "rank 3 of 7 lost, true");
  EXPECT_EQ(Str(), "");
  EXPECT_EQ(Str(-1, " ", 18446744073709551615ull), "-1 18446744073709551615");
}

TEST(Str, WritesNumbersThatReadBackTheSame) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    double number = std::bit_cast<double>(base::Hash64(seed));
    if (number != number) number = 0.1;
    const std::string text = Str(number);
    double back = 0;
    std::from_chars(text.data(), text.data() + text.size(), back);
    ASSERT_EQ(back, number) << text;
  }
}

TEST(Fixed, RoundsToDecimals) {
  EXPECT_EQ(Fixed(0.12345, 3), "0.123");
  EXPECT_EQ(Fixed(-2.5, 0), "-2");
  EXPECT_EQ(Fixed(1e300, 1).size(), 303u);
}

TEST(Grouped, PutsACommaBeforeEveryThirdDigit) {
  EXPECT_EQ(Grouped(0), "0");
  EXPECT_EQ(Grouped(999), "999");
  EXPECT_EQ(Grouped(1000), "1,000");
  EXPECT_EQ(Grouped(123456), "123,456");
  EXPECT_EQ(Grouped(1234567), "1,234,567");
  EXPECT_EQ(Grouped(18446744073709551615ull), "18,446,744,073,709,551,615");
}

TEST(HumanBytes, ChoosesAUnitThatKeepsThreeDigits) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(999), "999 B");
  EXPECT_EQ(HumanBytes(1000), "1.0 kB");
  EXPECT_EQ(HumanBytes(13'200'000), "13.2 MB");
  EXPECT_EQ(HumanBytes(5e18), "5000 PB");
}

TEST(Split, KeepsEmptyPartsAndJoinPutsThemTogetherAgain) {
  EXPECT_EQ(Split("a,,b,", ','), (std::vector<std::string_view>{"a", "", "b", ""}));
  EXPECT_EQ(Split("", ','), std::vector<std::string_view>{""});
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    std::mt19937_64 random(seed);
    std::string text;
    for (std::size_t i = random() % 12; i > 0; --i) text += "ab,"[random() % 3];
    const auto views = Split(text, ',');
    ASSERT_EQ(Join({views.begin(), views.end()}, ","), text);
  }
}

TEST(Trim, TakesBlanksOffBothEnds) {
  EXPECT_EQ(Trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(Trim(" \n "), "");
  EXPECT_EQ(Trim(""), "");
}

TEST(Quoted, ShowsWhatCanBeShownAndEscapesTheRest) {
  EXPECT_EQ(Quoted("abc"), "'abc'");
  EXPECT_EQ(Quoted(std::string_view("a\0\x1b\n", 4)), "'a\\x00\\x1b\\x0a'");
  const std::string long_text(1000, 'x');
  EXPECT_LT(Quoted(long_text).size(), 70u);
  EXPECT_NE(Quoted(long_text).find("(1000 bytes)"), std::string::npos);
}

TEST(Nearest, FindsTheWordThatWasMeant) {
  const std::vector<std::string> flags = {"epochs", "rate", "batch", "optimizer", "standardise"};
  EXPECT_EQ(Nearest("epoch", flags), "epochs");
  EXPECT_EQ(Nearest("optimiser", flags), "optimizer");
  EXPECT_EQ(Nearest("standardize", flags), "standardise");
  EXPECT_EQ(Nearest("rtae", flags), "rate");  // two letters swapped
  EXPECT_EQ(Nearest("rxxe", flags), "");      // two wrong of four could be anything
  EXPECT_EQ(Nearest("rat", flags), "rate");
}

TEST(Nearest, FindsNothingWhenNothingIsNear) {
  EXPECT_EQ(Nearest("quux", {"epochs", "rate"}), "");
  EXPECT_EQ(Nearest("quux", {}), "");
}

TEST(Nearest, ForgivesOneEditOfAnyLongerWord) {
  const std::vector<std::string> words = {"learning", "momentum", "checkpoint"};
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    std::mt19937_64 random(seed);
    const std::string& word = words[random() % words.size()];
    std::string wrong = word;
    const std::size_t at = random() % wrong.size();
    if (random() % 3 == 0)
      wrong.erase(at, 1);
    else if (random() % 2 == 0)
      wrong.insert(at, 1, 'q');
    else
      wrong[at] = 'q';
    ASSERT_EQ(Nearest(wrong, words), word) << wrong;
  }
}

}  // namespace
}  // namespace freshet
