#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "data/formats/format.h"

namespace freshet::data {

// What a field of a table's rows is: its kind, and for a feature which one.
struct CsvField {
  Column::Kind kind;
  std::uint32_t feature;  // its (first) number among those of a row, or the number of the category column
  std::uint64_t seed;     // for hashing a category
  bool four = false;      // this and the next three are numeric columns, one after another; the parser finds out
};

// The fields of rows with these columns, in this order.
std::vector<CsvField> FieldsFor(const std::vector<Column>& columns);

// Is this a word for "no value"?
bool IsMissing(std::string_view field);
// Where a number or a date is expected more words are, which could be names elsewhere.
bool IsMissingNumber(std::string_view field);

// The numbers of a column of dates: year, month, weekday, and hour if it has times. False when `text` is no date.
bool DateNumbers(std::string_view text, std::span<float> numbers);

// A parser of rows with these fields. Numeric columns come first among a row's features; categories follow, hashed or
// by dictionary. Borrows the description, which must hold together. Threads and failure as Parser.
std::unique_ptr<Parser> MakeCsvParser(const Description& description, std::vector<CsvField> fields, bool labelled);

}  // namespace freshet::data
