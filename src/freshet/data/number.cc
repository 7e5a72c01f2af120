#include "data/number.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace freshet::data {

const char* number_detail::ParseDoubleSlowly(const char* at, const char* end, double& out) {
  const bool minus = at < end && *at == '-';
  if (at < end && (*at == '-' || *at == '+')) ++at;
  if (at == end || *at == '-' || *at == '+') return nullptr;
  double value = 0;
  const auto [stop, error] = std::from_chars(at, end, value);
  if (error == std::errc::invalid_argument) return nullptr;
  if (error == std::errc::result_out_of_range) {
    // from_chars does not say which way it left the range. strtod gives infinity above and zero below; the exponent of
    // the first significant digit tells: it is far above or far below zero in either case.
    long lead = 0, exponent = 0;
    bool seen_point = false, significant = false;
    const char* p = at;
    for (; p < stop && (*p | 0x20) != 'e'; ++p) {
      if (*p == '.') {
        seen_point = true;
      } else if (significant || *p != '0') {
        significant = true;
        if (!seen_point) ++lead;
      } else if (seen_point) {
        --lead;
      }
    }
    if (p < stop) {
      const char* digits = p + 1 + (p[1] == '+' ? 1 : 0);
      constexpr long kMost = 1'000'000'000'000;  // more than any text has digits
      if (std::from_chars(digits, stop, exponent).ec == std::errc::result_out_of_range)
        exponent = *digits == '-' ? -kMost : kMost;
      exponent = std::clamp(exponent, -kMost, kMost);
    }
    value = lead + exponent > 0 ? std::numeric_limits<double>::infinity() : 0.0;
  }
  out = minus ? -value : value;
  return stop;
}

bool ParseNumber(std::string_view text, double& out) {
  if (text.empty()) return false;
  const char* const end = text.data() + text.size();
  return number_detail::ParseDoubleSlowly(text.data(), end, out) == end;
}

}  // namespace freshet::data
