#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace freshet::data {

namespace number_detail {

inline constexpr double kPowersOfTen[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                          1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

inline constexpr std::uint32_t kScale[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};

// How many of the 8 bytes of `word` (first byte lowest), counted from the first, are decimal digits.
inline int DigitsIn(std::uint64_t word) {
  const std::uint64_t low = word ^ 0x3030303030303030u;  // '0'..'9' become 0..9
  const std::uint64_t beyond = ((low + 0x7676767676767676u) | low) & 0x8080808080808080u;
  return beyond == 0 ? 8 : __builtin_ctzll(beyond) >> 3;
}

// The value of the first `count` (0 to 8) digits of `word`.
inline std::uint32_t DigitsValue(std::uint64_t word, int count) {
  if (count == 0) return 0;
  word = (word ^ 0x3030303030303030u) << (64 - 8 * count);  // digits at the top, zeros below: leading zeros
  word = (word * 10) + (word >> 8);
  word = (((word & 0x000000ff000000ffu) * (100 + (1000000ull << 32))) +
          (((word >> 16) & 0x000000ff000000ffu) * (1 + (10000ull << 32)))) >>
         32;
  return static_cast<std::uint32_t>(word);
}

inline std::uint64_t Load8(const char* at) {
  std::uint64_t word;
  std::memcpy(&word, at, 8);
  return word;
}

// The slow way, for what the fast one leaves: long mantissas, large exponents, inf and nan. The text ends at `end`.
// Returns where the number ends, or nullptr when there is none.
const char* ParseDoubleSlowly(const char* at, const char* end, double& out);

}  // namespace number_detail

// Both read from memory that stays readable for 16 bytes past the text (chunks are padded with newlines), take a number
// at `at` and return where it ends, or nullptr when there is none. `end` bounds the slow path only.

// A whole number of at most 19 digits, so that one more is a whole number too; with more digits it is nullptr.
inline const char* ParseWhole(const char* at, std::uint64_t& out) {
  using namespace number_detail;
  const std::uint64_t word = Load8(at);
  const int digits = DigitsIn(word);
  if (digits == 0) return nullptr;
  std::uint64_t value = DigitsValue(word, digits);
  at += digits;
  if (digits == 8) {
    for (int more = 0; static_cast<unsigned char>(*at - '0') < 10; ++at, ++more) {
      if (more == 11) return nullptr;
      value = value * 10 + static_cast<unsigned char>(*at - '0');
    }
  }
  out = value;
  return at;
}

// A decimal number, bit for bit what strtod makes of it. With a decimal comma for `mark` only what the fast way can do:
// nullptr for the rest.
template <char mark = '.'>
inline const char* ParseDouble(const char* at, const char* end, double& out) {
  using namespace number_detail;
  const char* const start = at;
  const auto slowly = [&]() -> const char* {
    if constexpr (mark == '.') return ParseDoubleSlowly(start, end, out);
    return nullptr;
  };
  if (static_cast<unsigned char>(*at - '0') < 10 && at[1] == mark) {  // 0.1234: where most fractions are
    const std::uint64_t rest = Load8(at + 2);
    const int fraction = DigitsIn(rest);
    const char* const stop = at + 2 + fraction;
    if (fraction < 8 && (*stop | 0x20) != 'e') {
      const std::uint64_t digits =
          static_cast<std::uint64_t>(*at - '0') * kScale[fraction] + DigitsValue(rest, fraction);
      out = static_cast<double>(digits) / kPowersOfTen[fraction];
      return stop;
    }
  }
  const bool minus = *at == '-';
  at += (minus || *at == '+') ? 1 : 0;
  const std::uint64_t word = Load8(at);
  const int whole = DigitsIn(word);
  if (whole == 8) return slowly();
  std::uint64_t mantissa = DigitsValue(word, whole);
  at += whole;
  int exponent = 0;
  if (*at == mark) {
    const std::uint64_t rest = Load8(at + 1);
    const int fraction = DigitsIn(rest);
    if (fraction == 8 || whole + fraction == 0) return slowly();
    mantissa = mantissa * kScale[fraction] + DigitsValue(rest, fraction);
    exponent = -fraction;
    at += 1 + fraction;
  } else if (whole == 0) {
    return slowly();
  }
  if ((*at | 0x20) == 'e') return slowly();
  // At most 14 digits and at most 10^7: both are exact doubles, so one division rounds once, as it should.
  double value = static_cast<double>(mantissa);
  if (exponent < 0) value /= kPowersOfTen[-exponent];
  out = minus ? -value : value;
  return at;
}

// The whole of `text` as a number (no blanks around it). Reads nothing past the text.
bool ParseNumber(std::string_view text, double& out);

// The whole of `text` as a number of a table: with `mark`, a point or a comma, before its fraction, and perhaps with
// thousands apart: by the other of the two, an apostrophe or a no-break space (1.234.567,8 or 1,234,567.8; where the
// mark is a comma also by a blank). Reads nothing past the text.
bool ParseMarked(std::string_view text, char mark, double& out);

}  // namespace freshet::data
