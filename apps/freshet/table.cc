#include "table.h"

#include <algorithm>

#include "base/str.h"

namespace freshet::cli {
namespace {

// As wide as it looks: letters, not bytes.
std::size_t Letters(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string Table(const std::vector<std::vector<std::string>>& rows, std::size_t left_columns) {
  std::vector<std::size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], Letters(row[c]));
  std::string out;
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string blank(widths[c] - Letters(row[c]), ' ');
      out += Str(c == 0 ? "" : "  ", c < left_columns ? row[c] + blank : blank + row[c]);
    }
    out += "\n";
  }
  return out;
}

std::string TimeText(double seconds) {
  if (seconds >= 1) return Str(Fixed(seconds, 2), " s");
  return seconds >= 1e-3 ? Str(Fixed(seconds * 1e3, 2), " ms") : Str(Fixed(seconds * 1e6, 1), " us");
}

}  // namespace freshet::cli
