// Whether the first line of a table names its columns. Two mistakes are possible: a row lost to be a name, a name
// learned as a value. Numbers below a text settle it; where all is text, a name is a value that never comes again.

#include <algorithm>
#include <set>

#include "data/date.h"
#include "data/formats/csv_columns.h"
#include "data/formats/csv_parser.h"
#include "data/number.h"

namespace freshet::data {
namespace {

using Field = HeadFields::Field;

bool IsNumber(std::string_view text) {
  double number = 0;
  return ParseMarked(text, '.', number) || ParseMarked(text, ',', number);
}

// Could it be what people call a column? It is short, and begins with a letter or one of a few signs.
bool CouldName(std::string_view text) {
  constexpr std::size_t kLongest = 64;
  if (text.empty() || text.size() > kLongest || text.find_first_of("@\n\r\t") != std::string_view::npos) return false;
  const auto first = static_cast<unsigned char>(text[0]);
  return (first | 0x20) >= 'a' ? (first | 0x20) <= 'z' || first >= 0x80 : first == '_' || first == '#' || first == '%';
}

// Numbers that count up, as pandas names columns that have no names, or years: at least two.
bool CountUp(std::span<const Field> first) {
  double begin = 0, last = 0;
  std::size_t count = 0;
  for (const Field& field : first) {
    double number = 0;
    if (!ParseNumber(field.text, number)) continue;
    if (count++ == 0) begin = number;
    if (count > 1 && number != last + 1) return false;
    last = number;
  }
  return count >= 2 && (begin == 0 || begin == 1 || (begin >= 1900 && begin <= 2100));
}

// What each column says of it.
struct Evidence {
  std::size_t names = 0, rows = 0;  // columns that speak for either
  bool numbers = false;             // there are some in the line
  bool distinct = true, come_again = false, could_name = true;
  double chance = 1;  // that values would look so new if the first line were a row like any other
};

Evidence Weigh(std::span<const Field> first, const std::vector<ColumnSight>& columns) {
  Evidence evidence;
  std::set<std::string_view> seen;
  const bool count_up = CountUp(first);
  for (std::size_t i = 0; i < first.size(); ++i) {
    const ColumnSight& column = columns[i];
    const std::string_view text = first[i].text;
    if (!text.empty()) evidence.distinct &= seen.insert(text).second;
    if (text.empty()) {  // an index that pandas wrote has no name, its values count
      const bool index = i == 0 && column.values > 1 && column.counts;
      evidence.names += index ? 1 : 0;
      continue;
    }
    Date date;
    if (IsMissing(text)) continue;
    if (IsNumber(text)) {
      evidence.numbers = true;
      evidence.rows += count_up ? 0 : 1;
      continue;
    }
    if (ParseDate(text, date)) {
      evidence.rows += 1;
      continue;
    }
    evidence.could_name &= CouldName(text);
    if (column.values == 0) continue;
    const bool numbers = column.all_numbers('.') || column.all_numbers(',') || column.all_dates();
    const std::uint64_t cells = column.values + column.missing;
    const bool needed = text.find_first_of(",;|\"\t\n") != std::string_view::npos;  // quotes say nothing then
    const bool quotes_differ = cells > 1 && !needed && column.quoted == (first[i].quoted ? 0 : cells);
    if (column.has(text)) {
      evidence.come_again = true;
    } else if (numbers || quotes_differ) {
      evidence.names += 1;
    } else {
      // By Good and Turing: the share of values that come once is about the chance that a value never came before.
      evidence.chance *= static_cast<double>(column.once() + 1) / static_cast<double>(column.values + 1);
    }
  }
  return evidence;
}

}  // namespace

Header InferHeader(std::span<const Field> first, const std::vector<ColumnSight>& columns) {
  const Evidence evidence = Weigh(first, columns);
  if (evidence.rows > 0) return {evidence.names >= evidence.rows};
  if (evidence.names > 0) return {true};
  const bool any = std::any_of(first.begin(), first.end(), [](const Field& f) { return CouldName(f.text); });
  if (!any || evidence.numbers || !evidence.distinct || evidence.come_again || !evidence.could_name) return {false};
  constexpr double kHardlyChance = 0.05;
  return {true, evidence.chance <= kHardlyChance};
}

}  // namespace freshet::data
