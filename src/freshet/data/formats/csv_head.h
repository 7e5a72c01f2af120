#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace freshet::data {

// The head of a table, looked at with care rather than in haste: its lines, their fields, what parts them.

// A line that is not blank, with its number counted from 1. A line end between quotes is none. A quote that opens a
// field and is never closed is an ordinary letter, as to the parser.
struct HeadLine {
  std::uint64_t number;
  std::string_view text;
};
std::vector<HeadLine> HeadLines(std::string_view head, std::size_t most);

// Splits lines into fields, trimmed and without their quotes.
class HeadFields {
 public:
  struct Field {
    std::string_view text;
    bool quoted = false;
  };
  // What it returns stays until the next call, like the line.
  std::span<const Field> Of(std::string_view line, char delimiter);

 private:
  std::vector<Field> fields_;
  std::deque<std::string> undoubled_;
};

// The delimiter by which most of the first lines have the same number of fields, more than one; among equals that which
// leaves most numbers whole, then that with most columns. A comma if there is none.
char InferDelimiter(std::span<const HeadLine> lines);

// The number of fields that more than half of the lines have; 0 when there is none.
std::size_t UsualColumns(std::span<const HeadLine> lines, char delimiter);

// Where a field begins with a quote that is not closed, counted from 1; 0 where there is none. One that opens a field
// of another line does not close it.
std::size_t UnclosedQuote(std::string_view line, char delimiter);

}  // namespace freshet::data
