#include "data/csv_columns.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "data/csv_parser.h"
#include "data/date.h"
#include "data/number.h"

namespace freshet::data {

bool ColumnSight::has(std::string_view text) const { return texts.contains(base::Hash64(text)); }

std::uint64_t ColumnSight::once() const {
  return static_cast<std::uint64_t>(
      std::count_if(texts.begin(), texts.end(), [](const auto& entry) { return entry.second == 1; }));
}

void ColumnSight::Add(const HeadFields::Field& field, std::uint64_t line) {
  const std::string_view text = field.text;
  quoted += field.quoted ? 1 : 0;
  double number = 0;
  if (text.size() == 1 && static_cast<unsigned char>(text[0] - '0') < 10) {  // most of what there is
    number = text[0] - '0';
    ++values, ++whole, ++numbers_by_point, ++numbers_by_comma;
    counts = counts && (values == 1 || number == last + 1);
    last = number;
    return;
  }
  if (IsMissingNumber(text)) {
    ++missing;
    counts = false;
    if (!IsMissing(text)) ++texts[base::Hash64(text)];
    return;
  }
  ++values;
  double by_comma = 0;
  const bool point = ParseMarked(text, '.', number);
  const bool plain = point && text.find_first_not_of("0123456789+-") == std::string_view::npos;
  const bool comma = plain || ParseMarked(text, ',', by_comma);
  numbers_by_point += point ? 1 : 0;
  numbers_by_comma += comma ? 1 : 0;
  if (plain) {
    ++whole;
    counts = counts && (values == 1 || number == last + 1);
    last = number;
    return;
  }
  counts = false;
  if (point && comma && number != by_comma) {
    if (++differ == 1) differ_example = text;
  } else if (point && !comma) {
    ++point_only;
  } else if (comma && !point) {
    if (++comma_only == 1) comma_example = text;
  }
  if (point && ParseNumber(text, number)) return;  // too many different ones to count
  if (!point && !comma) {
    Date date;
    if (ParseDate(text, date)) {
      ++dates;
      times += date.has_time ? 1 : 0;
    }
    if (example.empty()) {
      example = text;
      example_line = line;
    }
  }
  ++texts[base::Hash64(text)];
}

bool IsRowIndex(std::string_view name, const ColumnSight& column) {
  return (name.empty() || name == "Unnamed: 0") && column.counts && column.values > 1;
}

void LookAt(std::span<const HeadLine> lines, char delimiter, std::vector<ColumnSight>& columns) {
  HeadFields fields;
  for (const HeadLine& line : lines) {
    const auto row = fields.Of(line.text, delimiter);
    if (row.size() != columns.size()) continue;
    for (std::size_t i = 0; i < row.size(); ++i) columns[i].Add(row[i], line.number);
  }
}

char InferDecimal(const std::vector<ColumnSight>& columns, char delimiter) {
  std::uint64_t by_point = 0, by_comma = 0;
  bool differ = false;
  for (const ColumnSight& column : columns) {
    const auto mostly = [&](std::uint64_t count) { return count * 10 >= column.values * 9; };
    if (column.point_only > 0 && column.comma_only == 0 && mostly(column.numbers_by_point)) ++by_point;
    if (column.comma_only > 0 && column.point_only == 0 && mostly(column.numbers_by_comma)) ++by_comma;
    const bool commas = column.differ_example.find(',') != std::string::npos;
    differ |= commas && mostly(column.numbers_by_point);
  }
  if (by_point + by_comma == 0) return differ && delimiter == ';' ? ',' : '.';
  return by_comma > by_point ? ',' : '.';
}

}  // namespace freshet::data
