#include "data/number.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <string>

#include "base/random.h"
#include "base/str.h"

namespace freshet::data {
namespace {

std::uint64_t Bits(double number) { return std::bit_cast<std::uint64_t>(number); }

// Both ways, against strtod: the same bits (any NaN is a NaN), the same end. `after` is what follows in the chunk.
void ExpectAsStrtod(const std::string& text, std::string_view after) {
  const std::string chunk = Str(text, after, std::string(64, '\n'));
  char* strtod_end = nullptr;
  const double expected = std::strtod(chunk.c_str(), &strtod_end);
  ASSERT_EQ(strtod_end - chunk.c_str(), static_cast<std::ptrdiff_t>(text.size())) << text;
  double fast = 0, slow = 0;
  const char* const end = ParseDouble(chunk.data(), chunk.data() + text.size() + after.size(), fast);
  ASSERT_NE(end, nullptr) << text;
  ASSERT_EQ(end - chunk.data(), static_cast<std::ptrdiff_t>(text.size())) << text;
  ASSERT_TRUE(ParseNumber(text, slow)) << text;
  if (std::isnan(expected)) {
    ASSERT_TRUE(std::isnan(fast) && std::isnan(slow)) << text;
    return;
  }
  ASSERT_EQ(Bits(fast), Bits(expected)) << text << ": " << fast << " is not " << expected;
  ASSERT_EQ(Bits(slow), Bits(expected)) << text << ": " << slow << " is not " << expected;
}

std::string Printed(const char* format, double number) {
  char buffer[2000];
  const int size = std::snprintf(buffer, sizeof buffer, format, number);
  return {buffer, static_cast<std::size_t>(size)};
}

std::string Digits(base::Random& random, std::uint64_t most) {
  std::string digits;
  for (std::uint64_t n = random.Below(most + 1); n > 0; --n) digits += static_cast<char>('0' + random.Below(10));
  return digits;
}

TEST(Number, IsBitForBitWhatStrtodMakesOfAnyDouble) {
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "doubles");
    const double number = std::bit_cast<double>(random.Next());  // every exponent is as likely as every other
    if (!std::isfinite(number)) continue;
    for (const char* format : {"%.17g", "%g", "%.9g", "%e", "%.20e"}) ExpectAsStrtod(Printed(format, number), " ");
    const double moderate = std::ldexp(number / (1 + std::abs(number)), static_cast<int>(random.Below(40)) - 20);
    for (const char* format : {"%f", "%.1f", "%.3f", "%.7f", "%.8f", "%.12f", "%.17g", "%.0f"})
      ExpectAsStrtod(Printed(format, moderate), ",");
  }
}

TEST(Number, IsBitForBitWhatStrtodMakesOfAnyDecimal) {
  for (std::uint64_t seed = 0; seed < 40'000; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "decimals");
    const std::uint64_t most = seed % 10 == 0 ? 400 : (seed % 3 == 0 ? 25 : 9);
    const std::string whole = Digits(random, most), fraction = Digits(random, most);
    if (whole.empty() && fraction.empty()) continue;
    std::string text = random.Below(3) == 0 ? "-" : (random.Below(8) == 0 ? "+" : "");
    text += whole;
    if (!fraction.empty() || random.Below(4) == 0) text += "." + fraction;
    if (random.Below(3) == 0)
      text += Str(random.Below(2) ? "e" : "E", random.Below(3) == 0 ? "-" : (random.Below(2) ? "+" : ""),
                  random.Below(random.Below(2) ? 30 : 420));
    ExpectAsStrtod(text, seed % 2 ? "\t" : ":");
  }
}

TEST(Number, KnowsTheEdgesOfDoubles) {
  const std::string zeros(400, '0'), nines(400, '9');
  for (const std::string& text : {std::string("0"),
                                  std::string("-0"),
                                  std::string("+0.0"),
                                  std::string("00000000000000000000001"),
                                  "0." + zeros,
                                  "0." + zeros + "1",
                                  nines,
                                  "-" + nines,
                                  "0." + nines,
                                  nines + "." + nines,
                                  nines + "e-400",
                                  "1" + zeros + "e-400",
                                  "0." + zeros + "1e401",
                                  "0." + zeros + "1e700",
                                  "1" + zeros + "e-800",
                                  std::string("1e308"),
                                  std::string("1.7976931348623157e308"),
                                  std::string("1.7976931348623158e308"),
                                  std::string("1.7976931348623159e308"),
                                  std::string("1e309"),
                                  std::string("-1e309"),
                                  std::string("2.2250738585072014e-308"),
                                  std::string("2.2250738585072011e-308"),
                                  std::string("4.9406564584124654e-324"),
                                  std::string("2.4703282292062328e-324"),
                                  std::string("2.4703282292062327e-324"),
                                  std::string("1e-324"),
                                  std::string("-1e-400"),
                                  std::string("1e999999999999999999999"),
                                  std::string("1e-999999999999999999999"),
                                  std::string("0e999999999999999999999"),
                                  std::string("99e9223372036854775807"),
                                  std::string(".1e-9223372036854775808"),
                                  std::string("9007199254740993"),
                                  std::string("1."),
                                  std::string(".5"),
                                  std::string("-.5e1"),
                                  std::string("inf"),
                                  std::string("-inf"),
                                  std::string("infinity"),
                                  std::string("nan"),
                                  std::string("INF"),
                                  std::string("NaN")})
    ExpectAsStrtod(text, "\n");
}

TEST(Number, EndsWhereStrtodEndsThoughMoreFollows) {
  for (const char* after : {"e", "e+", "E-", "x", ".5", "..", " 7", ",", ":", "-1", "+", "\r\n", "\n", "f"})
    for (const char* text : {"1.5", "1234567890.25", "-0.125", "3.14159265358979", ".25"}) ExpectAsStrtod(text, after);
}

TEST(Number, IsNoneWhereThereIsNone) {
  for (const char* text : {"", "-", "+", ".", "-.", "e5", ".e5", "--1", "+-1", "-+1", "abc", ":", " 1", "\n"}) {
    const std::string chunk = Str(text, std::string(64, '\n'));
    double number = 7;
    EXPECT_EQ(ParseDouble(chunk.data(), chunk.data() + std::strlen(text), number), nullptr) << text;
    EXPECT_FALSE(ParseNumber(text, number)) << text;
  }
  double number = 0;
  for (const char* text : {"1 ", "1x", "1e", "1.5.", "0x10", "1,5", "nanx", "1e5e"})
    EXPECT_FALSE(ParseNumber(text, number)) << text;
}

TEST(WholeNumber, IsReadUpToNineteenDigits) {
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "wholes");
    const std::string digits = Digits(random, 19);
    if (digits.empty()) continue;
    const std::string chunk = Str(digits, seed % 2 ? ":" : " ", "5", std::string(64, '\n'));
    std::uint64_t number = 0;
    ASSERT_EQ(ParseWhole(chunk.data(), number), chunk.data() + digits.size()) << digits;
    ASSERT_EQ(number, std::strtoull(digits.c_str(), nullptr, 10));
  }
}

TEST(WholeNumber, IsNoneWithMoreDigitsOrNone) {
  const auto parses = [](std::string text) {
    text += std::string(64, '\n');
    std::uint64_t number = 0;
    return ParseWhole(text.data(), number) != nullptr;
  };
  EXPECT_TRUE(parses("9999999999999999999"));
  EXPECT_FALSE(parses("10000000000000000000"));
  EXPECT_FALSE(parses("18446744073709551615"));
  EXPECT_FALSE(parses(std::string(400, '9')));
  for (const char* text : {"", "-1", "+1", " 1", "a", ":", ".5", "\xb1\xb2"}) EXPECT_FALSE(parses(text)) << text;
}

TEST(Number, ReadsADecimalCommaAsItReadsAPoint) {
  for (std::uint64_t seed = 0; seed < 5'000; ++seed) {
    base::Random random(seed, "marks");
    const std::string whole = Digits(random, 12), fraction = Digits(random, 12);
    if (whole.empty() && fraction.empty()) continue;
    const std::string sign = random.Below(2) == 0 ? "-" : "", power = random.Below(4) == 0 ? "e3" : "";
    const std::string point = Str(sign, whole, ".", fraction, power), comma = Str(sign, whole, ",", fraction, power);
    SCOPED_TRACE(comma);
    double expected = 0, marked = 0, fast = 0;
    ASSERT_TRUE(ParseNumber(point, expected));
    ASSERT_TRUE(ParseMarked(comma, ',', marked));
    ASSERT_EQ(Bits(marked), Bits(expected));
    const std::string chunk = Str(comma, ";", std::string(64, '\n'));
    const char* const end = ParseDouble<','>(chunk.data(), chunk.data() + chunk.size(), fast);
    if (end == nullptr) continue;  // left to the slow way
    ASSERT_EQ(end - chunk.data(), static_cast<std::ptrdiff_t>(comma.size()));
    ASSERT_EQ(Bits(fast), Bits(expected));
  }
}

TEST(Number, ReadsThousandsApart) {
  const struct {
    const char* text;
    char mark;
    double number;
  } good[] = {{"1,234", '.', 1234},
              {"1,234,567.25", '.', 1234567.25},
              {"-12,345.5", '.', -12345.5},
              {"1.234", ',', 1234},
              {"1.234.567,25", ',', 1234567.25},
              {"1.234", '.', 1.234},
              {"1,234", ',', 1.234},
              {"1'234.5", '.', 1234.5},
              {"1'234,5", ',', 1234.5},
              {"1 234,5", ',', 1234.5},
              {"1\xc2\xa0"
               "234,5",
               ',', 1234.5},
              {"1\xe2\x80\xaf"
               "234,5",
               ',', 1234.5},
              {"+1.000.000", ',', 1000000},
              {"7", ',', 7},
              {"1e3", ',', 1000}};
  for (const auto& [text, mark, number] : good) {
    double out = 0;
    EXPECT_TRUE(ParseMarked(text, mark, out)) << text;
    EXPECT_EQ(out, number) << text;
  }
  const struct {
    const char* text;
    char mark;
  } bad[] = {{"1,23", '.'},     {"1,2345", '.'}, {"1234,567", '.'}, {"0,123", '.'},    {",123", '.'},
             {"1,234,56", '.'}, {"1.5", ','},    {"1.23,4", ','},   {"1.234.5", ','},  {"1,2,3", ','},
             {"1,234.5", ','},  {"", ','},       {",", ','},        {"-", ','},        {"1 234", '.'},
             {"1.2.3", '.'},    {"1,5.5", ','},  {"1'23", '.'},     {"1.234'567", ','}};
  for (const auto& [text, mark] : bad) {
    double out = 0;
    EXPECT_FALSE(ParseMarked(text, mark, out)) << text << " " << mark;
  }
}

}  // namespace
}  // namespace freshet::data
