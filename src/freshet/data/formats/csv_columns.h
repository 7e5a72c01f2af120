#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/formats/csv_head.h"

namespace freshet::data {

// What the head of a table shows of one column: what its values could be, and how often which of them comes.
struct ColumnSight {
  std::uint64_t values = 0, missing = 0;  // cells with a value, and those without one where a number is expected

  // Of the values. A number reads the same with either mark (7), with one of them only (1.5; 1,5), or differently
  // (1,234).
  std::uint64_t whole = 0;  // plain whole numbers
  std::uint64_t numbers_by_point = 0, numbers_by_comma = 0, point_only = 0, comma_only = 0, differ = 0;
  std::uint64_t dates = 0, times = 0;  // dates; those of them that have a time
  std::uint64_t quoted = 0;

  // Of the values that are not plain numbers: how often each comes, by its hash.
  std::unordered_map<std::uint64_t, std::uint32_t> texts = {};
  std::string differ_example = {}, comma_example = {};
  std::string example = {};  // the first value that is no number by either mark, and where it stands
  std::uint64_t example_line = 0;

  bool counts = true;  // every value is a whole number, one more than the value before
  double last = 0;

  std::uint64_t numbers(char mark) const { return mark == ',' ? numbers_by_comma : numbers_by_point; }
  bool all_numbers(char mark) const { return numbers(mark) == values; }
  bool all_dates() const { return values > 0 && dates == values; }
  bool has(std::string_view text) const;
  // How many texts came once.
  std::uint64_t once() const;

  void Add(const HeadFields::Field& field, std::uint64_t line);
};

// The index that pandas writes before each row, without a name or as it calls such a column when it reads it back.
bool IsRowIndex(std::string_view name, const ColumnSight& column);

// Looks at the lines with as many fields as there are columns; the parser will speak of the others.
void LookAt(std::span<const HeadLine> lines, char delimiter, std::vector<ColumnSight>& columns);

// The mark before the fraction of numbers: what most columns speak for that speak for one. Where all that could tell
// can be read in two ways (1,234), a comma if semicolons stand between the columns, else a point.
char InferDecimal(const std::vector<ColumnSight>& columns, char delimiter);

// Whether `first`, the first line, names the columns whose values below it are `columns`.
struct Header {
  bool is = false;
  bool sure = true;  // there was evidence
};
Header InferHeader(std::span<const HeadFields::Field> first, const std::vector<ColumnSight>& columns);

}  // namespace freshet::data
