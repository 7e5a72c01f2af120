#include "data/formats/csv_head.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/str.h"
#include "data/formats/lines.h"
#include "data/number.h"

namespace freshet::data {
namespace {

constexpr std::string_view kDelimiters = ",\t;| ";
constexpr std::size_t kLinesForCounts = 100;

// The quote that closes what begins at `at`, behind an opening one; npos when none does.
std::size_t ClosingQuote(std::string_view text, std::size_t at) {
  while (true) {
    at = text.find('"', at);
    if (at == std::string_view::npos || at + 1 >= text.size() || text[at + 1] != '"') return at;
    at += 2;
  }
}

bool MayPrecedeAField(std::string_view text, std::size_t at, std::size_t line_begin) {
  return at == line_begin || kDelimiters.find(text[at - 1]) != std::string_view::npos;
}

// How many lines have how many fields.
std::map<std::size_t, std::size_t> Counts(std::span<const HeadLine> lines, char delimiter) {
  std::map<std::size_t, std::size_t> counts;
  HeadFields fields;
  for (const HeadLine& line : lines.first(std::min(lines.size(), kLinesForCounts)))
    ++counts[fields.Of(line.text, delimiter).size()];
  return counts;
}

std::pair<std::size_t, std::size_t> MostOften(const std::map<std::size_t, std::size_t>& counts) {
  return *std::max_element(counts.begin(), counts.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
}

// Which share of the fields are numbers. By the wrong delimiter they fall apart: 1,5;2,5 by its commas is 1, 5;2 and 5.
double ShareOfNumbers(std::span<const HeadLine> lines, char delimiter) {
  constexpr std::size_t kEnough = 20;
  std::size_t numbers = 0, all = 0;
  HeadFields fields;
  for (const HeadLine& line : lines.first(std::min(lines.size(), kEnough)))
    for (const HeadFields::Field& field : fields.Of(line.text, delimiter)) {
      double number = 0;
      numbers += ParseMarked(field.text, '.', number) || ParseMarked(field.text, ',', number) ? 1 : 0;
      ++all;
    }
  return static_cast<double>(numbers) / static_cast<double>(all);
}

}  // namespace

std::vector<HeadLine> HeadLines(std::string_view head, std::size_t most) {
  std::vector<HeadLine> lines;
  std::uint64_t number = 1;
  for (std::size_t begin = 0; begin < head.size() && lines.size() < most;) {
    std::size_t at = begin;
    while (true) {
      at = head.find_first_of("\"\n", at);
      if (at == std::string_view::npos || head[at] == '\n') break;
      const std::size_t close = MayPrecedeAField(head, at, begin) ? ClosingQuote(head, at + 1) : std::string_view::npos;
      at = close == std::string_view::npos ? at + 1 : close + 1;
    }
    const std::size_t end = std::min(at, head.size());
    std::string_view line = head.substr(begin, end - begin);
    const auto inner = static_cast<std::uint64_t>(std::count(line.begin(), line.end(), '\n'));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!Trim(line).empty()) lines.push_back({number, line});
    number += inner + 1;
    begin = end + 1;
  }
  return lines;
}

std::span<const HeadFields::Field> HeadFields::Of(std::string_view line, char delimiter) {
  fields_.clear();
  undoubled_.clear();
  while (true) {
    std::size_t at = 0;
    while (at < line.size() && IsBlank(line[at]) && line[at] != delimiter) ++at;
    const std::size_t close = at < line.size() && line[at] == '"' ? ClosingQuote(line, at + 1) : std::string_view::npos;
    const bool quoted = close != std::string_view::npos;
    std::size_t end = quoted ? close : at;
    while (end < line.size() && line[end] != delimiter) ++end;  // fields are short: a call would take longer
    std::string_view text = quoted ? line.substr(at + 1, close - at - 1) : line.substr(at, end - at);
    if (!quoted && !text.empty() && text.back() <= ' ') text = Trim(text);
    if (quoted && text.find('"') != std::string_view::npos) text = undoubled_.emplace_back(Undoubled(text));
    fields_.push_back({text, quoted});
    if (end == line.size()) return fields_;
    line.remove_prefix(end + 1);
  }
}

char InferDelimiter(std::span<const HeadLine> lines) {
  char best = ',';
  std::tuple<std::size_t, double, std::size_t> best_score = {0, 0, 1};
  for (const char candidate : kDelimiters) {
    const auto [columns, agree] = MostOften(Counts(lines, candidate));
    if (columns < 2) continue;
    // A blank is in many texts: it counts only where every line agrees, and nothing else does.
    const bool any = std::get<0>(best_score) > 0;
    if (candidate == ' ' && (any || agree < std::min(lines.size(), kLinesForCounts))) continue;
    const std::tuple score(agree, ShareOfNumbers(lines, candidate), columns);
    if (score <= best_score) continue;
    best = candidate;
    best_score = score;
  }
  return best;
}

std::size_t UsualColumns(std::span<const HeadLine> lines, char delimiter) {
  if (lines.empty()) return 0;
  const auto [columns, agree] = MostOften(Counts(lines, delimiter));
  return 2 * agree > std::min(lines.size(), kLinesForCounts) ? columns : 0;
}

std::size_t UnclosedQuote(std::string_view line, char delimiter) {
  std::size_t at = 0;
  while (true) {
    while (at < line.size() && IsBlank(line[at]) && line[at] != delimiter) ++at;
    if (at < line.size() && line[at] == '"') {
      const std::size_t close = ClosingQuote(line, at + 1);
      if (close == std::string_view::npos) return at + 1;
      std::size_t behind = close + 1;
      while (behind < line.size() && IsBlank(line[behind]) && line[behind] != delimiter) ++behind;
      const bool ends = behind >= line.size() || line[behind] == delimiter;
      if (!ends && line.substr(at, close - at).find('\n') != std::string_view::npos) return at + 1;
      at = close + 1;
    }
    at = line.find(delimiter, at);
    if (at == std::string_view::npos) return 0;
    ++at;
  }
}

}  // namespace freshet::data
