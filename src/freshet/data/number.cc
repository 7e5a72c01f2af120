#include "data/number.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

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

namespace {

// What stands between the first two groups of thousands; empty when nothing does that could.
std::string_view Separator(std::string_view whole, char mark) {
  constexpr std::string_view kNoBreak[] = {"\xc2\xa0", "\xe2\x80\xaf"};
  const std::size_t digits = std::min(whole.find_first_not_of("0123456789"), whole.size());
  const std::string_view rest = whole.substr(digits);
  for (const std::string_view space : kNoBreak)
    if (rest.starts_with(space)) return space;
  const std::string_view others = mark == ',' ? ".' " : ",'";
  return !rest.empty() && others.find(rest[0]) != std::string_view::npos ? rest.substr(0, 1) : std::string_view();
}

// Appends the digits of groups of thousands: one to three that are not led by a zero, then three each.
bool AppendGroups(std::string_view whole, std::string_view separator, std::string& out) {
  std::size_t size = std::min(whole.find(separator), whole.size());
  if (size == 0 || size > 3 || whole[0] == '0') return false;
  while (true) {
    const std::string_view group = whole.substr(0, size);
    if (group.size() != size || group.find_first_not_of("0123456789") != std::string_view::npos) return false;
    out += group;
    whole.remove_prefix(size);
    if (whole.empty()) return true;
    if (!whole.starts_with(separator)) return false;
    whole.remove_prefix(separator.size());
    size = 3;
  }
}

}  // namespace

bool ParseMarked(std::string_view text, char mark, double& out) {
  if (mark == '.' && ParseNumber(text, out)) return true;
  const std::size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  const std::size_t end = std::min(text.find_first_of(mark == ',' ? ",eE" : ".eE", sign), text.size());
  const std::string_view whole = text.substr(sign, end - sign), separator = Separator(whole, mark);
  if (separator.empty() && (mark == '.' || whole.find('.') != std::string_view::npos)) return false;
  std::string plain(text.substr(0, sign));
  if (separator.empty())
    plain += whole;
  else if (!AppendGroups(whole, separator, plain))
    return false;
  std::string_view rest = text.substr(end);
  if (!rest.empty() && rest[0] == mark) {
    plain += '.';
    rest.remove_prefix(1);
    if (rest.find(mark == ',' ? '.' : ',') != std::string_view::npos) return false;
  }
  return ParseNumber(plain += rest, out);
}

}  // namespace freshet::data
