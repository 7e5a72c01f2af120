#include "data/formats/csv_notes.h"

#include <algorithm>

#include "base/option.h"
#include "data/number.h"

namespace freshet::data {
namespace {

using Kind = Column::Kind;

// How a flag names a column: by its name, or by its number where it has none that could be told from a list.
std::string FlagName(const Description& description, std::size_t i) {
  const std::string& name = description.columns[i].name;
  return name.empty() || !description.header || name.find_first_of(", \t\n\"'") != std::string::npos ? Str(i + 1)
                                                                                                     : name;
}

std::string ColumnName(const Description& description, std::size_t i) {
  const std::string& name = description.columns[i].name;
  return name.empty() ? Str("column ", i + 1) : Str("column ", Quoted(name));
}

// 1,234 can be read in two ways; which it was is worth a word.
std::string NoteOfDecimal(const Description& description, const std::vector<ColumnSight>& columns) {
  const bool comma = description.decimal == ',';
  for (const ColumnSight& column : columns)
    if (comma && column.comma_only > 0)
      return Str("numbers are read with a decimal comma (", Quoted(column.comma_example), "); ", Option("decimal"),
                 " point reads them with a point");
  for (const ColumnSight& column : columns) {
    double number = 0;
    if (column.differ > 0 && column.differ_example.find(',') != std::string::npos &&
        ParseMarked(column.differ_example, description.decimal, number))
      return Str(Quoted(column.differ_example), " is read as ", number, "; ", Option("decimal"), " ",
                 comma ? "point" : "comma", " reads it the other way");
  }
  return {};
}

// A number with a sign before it or a unit behind it: $5, 12%, 3 kg. One after letters is a name.
bool IsNumberWithMore(std::string_view text) {
  constexpr std::size_t kLongest = 4;
  const std::size_t begin = text.find_first_of("0123456789");
  if (begin == std::string_view::npos || begin > kLongest) return false;
  const auto is_letter = [](char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; };
  const std::string_view before = text.substr(0, begin);
  if (std::any_of(before.begin(), before.end(), is_letter) || before.find_first_of("-/:#_") != std::string_view::npos)
    return false;
  const std::size_t end = std::min(text.find_first_not_of("0123456789.,", begin), text.size());
  const std::string_view behind = text.substr(end);
  return before.empty() != behind.empty() && behind.size() <= kLongest &&
         behind.find_first_of("0123456789-/:_") == std::string_view::npos;
}

// 04.03.2021 or 3/4/21: a date that does not say which is the month.
bool IsOtherDate(std::string_view text) {
  std::size_t groups = 0, digits = 0;
  for (const char c : text) {
    if (static_cast<unsigned char>(c - '0') < 10) {
      groups += digits++ == 0 ? 1 : 0;
    } else if ((c == '.' || c == '/' || c == '-') && digits >= 1 && digits <= 4) {
      digits = 0;
    } else {
      return groups == 3 && (c == ' ' || c == ':');  // a time follows
    }
  }
  return groups == 3 && digits >= 2;
}

constexpr std::uint64_t kEnoughToTell = 20;  // values, to say that nearly every one is new

bool NearlyAllNew(const ColumnSight& column) {
  return column.values >= kEnoughToTell && column.texts.size() * 10 >= column.values * 9;
}

std::string NoteOfCategory(const Description& description, std::size_t i, const ColumnSight& column) {
  const std::string name = ColumnName(description, i), flag = FlagName(description, i);
  if (IsOtherDate(column.example))
    return Str(name, " seems to hold dates (", Quoted(column.example),
               ") that do not say which number is the month: they are read as categories; write them as 2021-03-04 to "
               "have year, month and weekday, or leave them out with ",
               Option("ignore"), " ", flag);
  if (IsNumberWithMore(column.example))
    return Str(name, " is read as categories, since its numbers have more to them (", Quoted(column.example),
               "); leave only numbers in it to learn from their size");
  const std::uint64_t numbers = column.numbers(description.decimal);
  if (column.values >= kEnoughToTell && numbers * 10 >= column.values * 9 && numbers < column.values)
    return Str(name, " is read as categories because of ", Quoted(column.example), " in line ", column.example_line,
               "; ", Option("numeric"), " ", flag, " reads numbers and takes such rows for malformed");
  if (NearlyAllNew(column))
    return Str(name, " has ", Grouped(column.texts.size()), " different texts in ", Grouped(column.values),
               " rows: as categories they say nothing of rows to come; leave them out with ", Option("ignore"), " ",
               flag);
  return {};
}

bool IsNamedLikeAnId(std::string_view name) {
  std::string lower;
  for (const char c : name) lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
  return lower == "id" || lower == "index" || lower == "rowid" || lower.ends_with("_id") || lower.ends_with(" id") ||
         lower.ends_with("-id") || lower.ends_with(".id") || (name.ends_with("Id") && name.size() > 2);
}

std::string NoteOfNumber(const Description& description, std::size_t i, const ColumnSight& column) {
  const std::string name = ColumnName(description, i), flag = FlagName(description, i);
  if (column.values == 0) return Str(name, " has no value in the first ", Grouped(column.missing), " rows");
  if (column.whole < column.values || column.values < kEnoughToTell) return {};
  if (column.counts) return Str(name, " counts the rows; leave it out with ", Option("ignore"), " ", flag);
  if (description.header && IsNamedLikeAnId(description.columns[i].name))
    return Str(name, " is called like an id and read as a number; ", Option("categorical"), " ", flag,
               " makes each a category, ", Option("ignore"), " ", flag, " leaves them out");
  return {};
}

std::string NoteOfLabel(const Description& description, std::size_t i, const ColumnSight& column) {
  if (description.labels.kind == Labels::Kind::kReal) return {};
  const std::string name = ColumnName(description, i);
  if (column.all_dates())
    return Str("the label, ", name, ", holds dates (", Quoted(column.example),
               "), each of which is a class of its own; name another with ", Option("label"));
  if (NearlyAllNew(column) && !column.all_numbers(description.decimal))
    return Str("the label, ", name, ", has ", Grouped(column.texts.size()), " different texts in ",
               Grouped(column.values), " rows, each of which is a class of its own; name another with ",
               Option("label"));
  return {};
}

std::string NoteOfIgnored(const Description& description, std::size_t i, const ColumnSight& column) {
  const std::string& name = description.columns[i].name;
  if (description.header && i == 0 && IsRowIndex(name, column))
    return Str("column 1 counts the rows and has no name of its own, as an index that pandas wrote: it is left out; ",
               Option("numeric"), " 1 takes it in");
  if ((name.empty() || !description.header) && column.values == 0)
    return Str("column ", i + 1, " has neither name nor values: it is left out");
  return {};
}

std::string NoteOfColumn(const Description& description, std::size_t i, const ColumnSight& column) {
  const std::string name = ColumnName(description, i), flag = FlagName(description, i);
  switch (description.columns[i].kind) {
    case Kind::kNumber:
      return NoteOfNumber(description, i, column);
    case Kind::kCategory:
      return NoteOfCategory(description, i, column);
    case Kind::kLabel:
      return NoteOfLabel(description, i, column);
    case Kind::kDate:
    case Kind::kDateTime:
      return Str(name, " holds dates: they are read as year, month",
                 description.columns[i].kind == Kind::kDate ? " and weekday" : ", weekday and hour", "; ",
                 Option("ignore"), " ", flag, " leaves them out");
    case Kind::kIgnored:
      return NoteOfIgnored(description, i, column);
    default:
      return {};
  }
}

}  // namespace

std::vector<std::string> NotesOf(const Description& description, const std::vector<ColumnSight>& columns,
                                 bool header_sure) {
  std::vector<std::string> notes;
  const auto add = [&](std::string note) {
    if (!note.empty()) notes.push_back(std::move(note));
  };
  if (!header_sure)
    add(Str("the first line is taken for the names of the columns (", Quoted(description.columns[0].name),
            ", …), though nothing but their form says so; ", Option("header"), " no makes it a row"));
  add(NoteOfDecimal(description, columns));
  for (std::size_t i = 0; i < columns.size(); ++i) add(NoteOfColumn(description, i, columns[i]));
  return notes;
}

}  // namespace freshet::data
