// Comma-, tab-, semicolon- or bar-separated tables with RFC 4180 quoting. Types are inferred on the head of the data
// and then enforced. This file settles what each column is by what csv_columns.cc and csv_header.cc see in the head;
// csv_parser.cc reads the rows.

#include <algorithm>
#include <cmath>

#include "base/option.h"
#include "data/formats/csv_columns.h"
#include "data/formats/csv_head.h"
#include "data/formats/csv_notes.h"
#include "data/formats/csv_parser.h"
#include "data/formats/format.h"
#include "data/number.h"

namespace freshet::data {
namespace {

constexpr std::size_t kSampleRows = 10'000;
constexpr std::string_view kNoLabel = "none";  // what a user says when no column is the label

Result<char> Delimiter(const InputOptions& options, const std::vector<HeadLine>& lines) {
  if (options.delimiter.empty()) return InferDelimiter(lines);
  if (options.delimiter == "tab" || options.delimiter == "\\t") return '\t';
  if (options.delimiter.size() != 1)
    return Error{Code::kInvalid,
                 Str(Option("delimiter"), " ", Quoted(options.delimiter), ": expected one character, or tab")};
  constexpr std::string_view kTaken = "+-.eE\"\r\n0123456789";
  if (options.delimiter[0] == '\0' || kTaken.find(options.delimiter[0]) != std::string_view::npos)
    return Error{Code::kInvalid, Str(Option("delimiter"), " ", Quoted(options.delimiter),
                                     ": expected a character that numbers, quotes and line ends do not have")};
  return options.delimiter[0];
}

// The column a user means by name or by number (from 1; negative: from the end).
Result<std::size_t> FindColumn(const std::vector<Column>& columns, const std::string& wanted, std::string_view flag) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == wanted) return i;
    names.push_back(columns[i].name);
  }
  double number = 0;
  const auto count = static_cast<double>(columns.size());
  if (ParseNumber(wanted, number) && number == std::floor(number) && number != 0 && std::abs(number) <= count)
    return static_cast<std::size_t>(number > 0 ? number - 1 : count + number);
  const std::string nearest = Nearest(wanted, names);
  return Error{Code::kInvalid, Str(flag, " ", Quoted(wanted), ": no such column; ",
                                   nearest.empty() ? Str("there are ", columns.size(), " columns: ", Join(names, ", "))
                                                   : Str("did you mean ", Quoted(nearest), "?"))};
}

// A column of that name by custom, or the last, of those that are not left out or taken for something else.
std::size_t GuessLabelColumn(const std::vector<Column>& columns) {
  const auto free = [&](std::size_t i) {
    const Column::Kind kind = columns[i].kind;
    return kind != Column::Kind::kIgnored && kind != Column::Kind::kWeight && kind != Column::Kind::kTime;
  };
  for (const std::string_view name : {"label", "target", "class", "y", "Label", "Target", "Class"})
    for (std::size_t i = 0; i < columns.size(); ++i)
      if (columns[i].name == name && free(i)) return i;
  for (std::size_t i = columns.size(); i-- > 0;)
    if (free(i)) return i;
  return columns.size() - 1;
}

bool LooksLike(const Head& head) {
  const std::string_view start = head.bytes.substr(0, 4096);
  if (start.find('\0') != std::string_view::npos) return false;
  auto lines = HeadLines(start, 20);
  if (start.size() < head.bytes.size() && lines.size() > 1) lines.pop_back();  // it may be cut
  return !lines.empty() && UsualColumns(lines, InferDelimiter(lines)) > 1;
}

// What a line of the head has wrong before its columns can be looked at.
Result<void> CheckLine(const Head& head, const HeadLine& line, char delimiter) {
  const std::size_t quote = UnclosedQuote(line.text, delimiter);
  if (quote == 0) return {};
  return Error{Code::kBadInput,
               Str(head.path, ":", line.number, ":", quote,
                   ": found a quote that is never closed, expected another before the end of the line")};
}

// The first line says how many columns there are; were it the only one with that many, it would be wrong, not all the
// others.
Result<void> CheckFirstLine(const Head& head, std::span<const HeadLine> lines, std::size_t columns, char delimiter,
                            bool header) {
  const std::span<const HeadLine> rest = lines.subspan(1);
  const std::size_t usual = UsualColumns(rest, delimiter);
  if (rest.size() < 2 || usual == 0 || usual == columns) return {};
  HeadFields fields;
  for (const HeadLine& line : rest)
    if (fields.Of(line.text, delimiter).size() == columns) return {};
  return Error{Code::kBadInput, Str(head.path, ":", lines[0].number, ":1: found ", columns,
                                    columns == 1 ? " column" : " columns", ", but ", usual, " in the lines below; ",
                                    header ? "expected a name for each" : "expected as many in the first")};
}

// What the values of a column are, unless somebody says otherwise. One without name and values is what a delimiter at
// the end of each line makes.
Column::Kind KindOf(std::string_view name, const ColumnSight& sight, bool first, char decimal) {
  if (name.empty() && sight.values == 0) return Column::Kind::kIgnored;
  if (first && IsRowIndex(name, sight)) return Column::Kind::kIgnored;
  if (sight.all_dates()) return sight.times > 0 ? Column::Kind::kDateTime : Column::Kind::kDate;
  return sight.all_numbers(decimal) ? Column::Kind::kNumber : Column::Kind::kCategory;
}

// The labels of all rows that have as many fields as there are columns.
std::vector<std::string> LabelsIn(std::span<const HeadLine> rows, char delimiter, std::size_t label,
                                  std::size_t columns, char decimal) {
  std::vector<std::string> seen;
  HeadFields fields;
  for (const HeadLine& row : rows) {
    const auto line = fields.Of(row.text, delimiter);
    if (line.size() != columns || IsMissing(line[label].text)) continue;
    seen.push_back(decimal == '.' ? std::string(line[label].text) : CanonicalLabel(line[label].text, decimal));
  }
  return seen;
}

Result<void> TakeUsersWord(const InputOptions& options, std::vector<Column>& columns) {
  const auto set = [&](const std::string& name, std::string_view flag, Column::Kind kind) -> Result<void> {
    columns[TRY(FindColumn(columns, name, flag))].kind = kind;
    return {};
  };
  for (const std::string& name : options.numeric) TRY(set(name, Option("numeric"), Column::Kind::kNumber));
  for (const std::string& name : options.categorical) TRY(set(name, Option("categorical"), Column::Kind::kCategory));
  for (const std::string& name : options.ignore) TRY(set(name, Option("ignore"), Column::Kind::kIgnored));
  if (!options.weight_column.empty()) TRY(set(options.weight_column, Option("weight-column"), Column::Kind::kWeight));
  if (!options.time_column.empty()) TRY(set(options.time_column, Option("time-column"), Column::Kind::kTime));
  return {};
}

std::uint64_t CountOf(const std::vector<Column>& columns, Column::Kind kind) {
  return static_cast<std::uint64_t>(
      std::count_if(columns.begin(), columns.end(), [&](const Column& c) { return c.kind == kind; }));
}

std::uint64_t NumbersIn(const std::vector<Column>& columns) {
  std::uint64_t numbers = 0;
  for (const Column& column : columns) numbers += column.numbers();
  return numbers;
}

// Settles whether there is a header, and fills `sights` with what the rows show of each column.
Result<Header> LookAtHead(const Head& head, const InputOptions& options, std::span<const HeadLine> lines,
                          char delimiter, std::vector<ColumnSight>& sights) {
  HeadFields reading;
  const auto first = reading.Of(lines[0].text, delimiter);
  sights.assign(first.size(), {});
  LookAt(lines.subspan(1), delimiter, sights);
  Header header = {options.header == "yes"};
  if (options.header == "auto") header = InferHeader(first, sights);
  if (header.is && lines.size() == 1)
    return Error{Code::kBadInput, Str(head.path, ":", lines[0].number + 1,
                                      ":1: found no rows below the names of the columns, expected some; use ",
                                      Option("header"), " no if the first line is a row")};
  TRY(CheckFirstLine(head, lines, first.size(), delimiter, header.is));
  if (header.is) {
    TRY(CheckLine(head, lines[1], delimiter));
  } else {
    sights.assign(first.size(), {});  // whether a column counts is told in order
    LookAt(lines, delimiter, sights);
  }
  return header;
}

// The columns with their names and what they are.
Result<void> DescribeColumns(const InputOptions& options, std::string_view first_line,
                             const std::vector<ColumnSight>& sights, Description& description) {
  HeadFields reading;
  const auto first = reading.Of(first_line, description.delimiter[0]);
  auto& columns = description.columns;
  columns.clear();
  for (std::size_t i = 0; i < first.size(); ++i) {
    const std::string_view name = description.header ? first[i].text : std::string_view();
    columns.push_back({description.header ? std::string(name) : Str("column", i + 1),
                       KindOf(name, sights[i], description.header && i == 0, description.decimal)});
  }
  return TakeUsersWord(options, columns);
}

Result<void> Describe(const Head& head, const InputOptions& options, base::Files&, Description& description) {
  TRY(CheckBits(options.bits));
  const auto lines = HeadLines(head.bytes, kSampleRows + 1);
  if (lines.empty()) return Error{Code::kBadInput, Str(head.path, ":1:1: found only blank lines, expected a table")};
  if (const std::size_t at = lines[0].text.find('\r'); lines.size() == 1 && at != std::string_view::npos)
    return Error{Code::kBadInput, Str(head.path, ":1:", at + 1,
                                      ": found a carriage return and no line feed in all of the text, expected lines "
                                      "that end in one; tr '\\r' '\\n' makes them")};
  const char delimiter = TRY(Delimiter(options, lines));
  description.delimiter = std::string(1, delimiter);
  TRY(CheckLine(head, lines[0], delimiter));
  std::vector<ColumnSight> sights;
  const Header header = TRY(LookAtHead(head, options, lines, delimiter, sights));
  description.header = header.is;
  description.decimal =
      options.decimal == "auto" ? InferDecimal(sights, delimiter) : (options.decimal == "comma" ? ',' : '.');
  auto& columns = description.columns;
  TRY(DescribeColumns(options, lines[0].text, sights, description));

  const bool has_label = options.label != kNoLabel;
  std::vector<std::string> labels_seen;
  if (has_label) {
    const std::size_t label =
        options.label.empty() ? GuessLabelColumn(columns) : TRY(FindColumn(columns, options.label, Option("label")));
    columns[label].kind = Column::Kind::kLabel;
    labels_seen =
        LabelsIn(std::span(lines).subspan(header.is ? 1 : 0), delimiter, label, columns.size(), description.decimal);
  }

  const bool categories = CountOf(columns, Column::Kind::kCategory) > 0;
  description.features = NumbersIn(columns);
  if (!categories && description.features == 0)
    return Error{Code::kBadInput, Str(head.path, ":1:1: found no column to learn from, expected one beside the label")};
  description.bits = options.bits;
  if (options.bits > 0 && description.features > (1ull << options.bits))
    return Error{Code::kInvalid,
                 Str(Option("bits"), " ", options.bits, ": ", description.features, " numeric columns do not fit in")};
  description.dense = !categories;
  description.standardise = options.standardise && description.features > 0;
  if (description.standardise) description.moments = Moments(description.features);
  if (categories && options.bits == 0) description.dictionaries.resize(1);
  description.labels = {};
  description.labels.kind = Labels::Kind::kReal;
  if (has_label) TRY(SettleLabels(head, options, labels_seen, description.labels));
  description.notes = NotesOf(description, sights, header.sure);
  return {};
}

// Whether a description, which may come from a file, holds together: the parser relies on it.
Result<void> CheckDescription(const Description& description) {
  const auto& columns = description.columns;
  const bool categories = CountOf(columns, Column::Kind::kCategory) > 0;
  const bool sound = description.delimiter.size() == 1 && !columns.empty() &&
                     NumbersIn(columns) == description.features && description.dense == !categories &&
                     CountOf(columns, Column::Kind::kLabel) <= 1 &&
                     (!categories || description.bits > 0 || description.dictionaries.size() == 1);
  if (sound) return {};
  return Error{Code::kCorrupt, "input description: the columns of the table do not fit together"};
}

// The fields of this file: by header names where there are some (order may differ), else by position. The label may be
// missing altogether when rows need none.
Result<std::vector<CsvField>> FieldsOf(const Head& head, const Description& description, bool labelled) {
  const std::vector<CsvField> known = FieldsFor(description.columns);
  const auto lines = HeadLines(head.bytes, 1);
  if (lines.empty()) return known;
  HeadFields reading;
  const auto first = reading.Of(lines[0].text, description.delimiter[0]);
  std::vector<CsvField> fields;
  if (!description.header) {
    if (labelled || first.size() != known.size() - 1) return known;
    for (const auto& field : known)
      if (field.kind != Column::Kind::kLabel) fields.push_back(field);
    return fields;
  }
  std::vector<bool> found(known.size());
  for (const HeadFields::Field& name : first) {
    std::size_t i = 0;  // names may stand twice: the first goes with the first
    while (i < known.size() && (found[i] || description.columns[i].name != name.text)) ++i;
    fields.push_back(i < known.size() ? known[i] : CsvField{Column::Kind::kIgnored, 0, 0});
    if (i < known.size()) found[i] = true;
  }
  for (std::size_t i = 0; i < known.size(); ++i) {
    const Column::Kind kind = known[i].kind;
    const bool optional = kind == Column::Kind::kIgnored || kind == Column::Kind::kWeight ||
                          kind == Column::Kind::kTime || (kind == Column::Kind::kLabel && !labelled);
    if (!found[i] && !optional)
      return Error{Code::kBadInput,
                   Str(head.path, ":", lines[0].number, ":1: found no column ", Quoted(description.columns[i].name),
                       " in the header, expected one, since the model was trained with it")};
  }
  return fields;
}

Result<std::unique_ptr<Parser>> Make(const Head& head, const Description& description, const InputOptions&,
                                     base::Files&, bool labelled) {
  TRY(CheckDescription(description));
  if (labelled && CountOf(description.columns, Column::Kind::kLabel) == 0)
    return Error{Code::kInvalid,
                 Str(Option("label"),
                     " none: these rows have no label, and learning or evaluating needs one; name its column with ",
                     Option("label"))};
  return MakeCsvParser(description, TRY(FieldsOf(head, description, labelled)), labelled);
}

}  // namespace

extern const Format kCsv = {"csv", "a table: columns by comma, tab, semicolon or bar; first line may name them",
                            LooksLike, Describe, Make};

}  // namespace freshet::data
