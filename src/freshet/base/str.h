#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace freshet {

namespace str_detail {
inline void Append(std::string& out, std::string_view text) { out += text; }
inline void Append(std::string& out, const char* text) { out += text; }
inline void Append(std::string& out, char c) { out += c; }
inline void Append(std::string& out, bool b) { out += b ? "true" : "false"; }
template <class T>
requires std::is_arithmetic_v<T>
void Append(std::string& out, T number) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, number).ptr;
  out.append(buffer, end);
}
}  // namespace str_detail

// Joins pieces of text and numbers (shortest form that reads back the same): Str("rank ", 3, " lost").
template <class... Pieces>
std::string Str(const Pieces&... pieces) {
  std::string out;
  (str_detail::Append(out, pieces), ...);
  return out;
}

// A number with a fixed count of decimals: Fixed(0.12345, 3) is "0.123".
std::string Fixed(double number, int decimals);
// 1234567 as "1,234,567".
std::string Grouped(unsigned long long number);
// Bytes for people: "13.2 MB".
std::string HumanBytes(double bytes);

std::vector<std::string_view> Split(std::string_view text, char separator);
std::string Join(const std::vector<std::string>& parts, std::string_view separator);
std::string_view Trim(std::string_view text);

// A piece of input as it can be shown in an error: quoted, non-printable bytes escaped, cut after a few dozen.
std::string Quoted(std::string_view text);

// The candidate closest to `word` by edit distance, or "" when none is near enough to be meant.
std::string Nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace freshet
