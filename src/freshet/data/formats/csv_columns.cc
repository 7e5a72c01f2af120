#include "data/formats/csv_columns.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "data/date.h"
#include "data/formats/csv_parser.h"
#include "data/number.h"

namespace freshet::data {

bool ColumnSight::has(std::string_view text) const { return texts.contains(base::Hash64(text)); }

std::uint64_t ColumnSight::once() const {
  return static_cast<std::uint64_t>(
      std::count_if(texts.begin(), texts.end(), [](const auto& entry) { return entry.second == 1; }));
}

namespace {

// What a field looks like, for the most frequent ones: told from its characters, without making a number of it.
enum class Shape { kWhole, kDecimal, kOther };  // 42, 4.2, and whatever wants a closer look (1.234 may be a thousand)

Shape ShapeOf(std::string_view text, double& whole) {
  constexpr std::size_t kMostDigits = 15;  // what a double holds of any whole number
  const std::size_t sign = !text.empty() && text[0] == '-' ? 1 : 0;
  std::size_t point = text.size();
  std::uint64_t number = 0;
  if (text.size() == sign || text.size() > sign + kMostDigits) return Shape::kOther;
  for (std::size_t i = sign; i < text.size(); ++i) {
    const auto digit = static_cast<unsigned char>(text[i] - '0');
    if (digit < 10)
      number = number * 10 + digit;
    else if (text[i] == '.' && point == text.size() && i > sign)
      point = i;
    else
      return Shape::kOther;
  }
  whole = sign == 0 ? static_cast<double>(number) : -static_cast<double>(number);
  if (point == text.size()) return Shape::kWhole;
  const std::size_t after = text.size() - point - 1;
  return after > 0 && after != 3 ? Shape::kDecimal : Shape::kOther;
}

}  // namespace

void ColumnSight::Add(const HeadFields::Field& field, std::uint64_t line) {
  const std::string_view text = field.text;
  quoted += field.quoted ? 1 : 0;
  double number = 0;
  const auto digit = text.size() == 1 ? static_cast<unsigned char>(text[0] - '0') : 10;
  if (digit < 10) {  // most of what there is
    ++values, ++whole, ++numbers_by_point, ++numbers_by_comma;
    counts = counts && (values == 1 || digit == last + 1);
    last = digit;
    return;
  }
  const Shape shape = ShapeOf(text, number);
  if (shape == Shape::kWhole) {
    ++values, ++whole, ++numbers_by_point, ++numbers_by_comma;
    counts = counts && (values == 1 || number == last + 1);
    last = number;
    return;
  }
  if (shape == Shape::kDecimal) {
    ++values, ++numbers_by_point, ++point_only;
    counts = false;
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
