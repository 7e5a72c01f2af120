// Comma-, tab-, semicolon- or bar-separated tables with RFC 4180 quoting. Types are inferred on the head of the data
// and then enforced. This file looks at the head and settles what each column is; csv_parser.cc reads the rows.

#include <algorithm>
#include <cmath>

#include "data/csv_parser.h"
#include "data/format.h"
#include "data/number.h"

namespace freshet::data {
namespace {

constexpr std::size_t kSampleRows = 10'000;
constexpr std::string_view kNoLabel = "none";  // what a user says when no column is the label

// One line of fields, unquoted and trimmed; for the head, where speed does not matter.
std::vector<std::string> SplitFields(std::string_view line, char delimiter) {
  std::vector<std::string> fields(1);
  bool inside = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (inside && line[i] == '"' && i + 1 < line.size() && line[i + 1] == '"')
      fields.back() += line[++i];
    else if (line[i] == '"' && (inside || Trim(fields.back()).empty()))
      inside = !inside;
    else if (line[i] == delimiter && !inside)
      fields.emplace_back();
    else
      fields.back() += line[i];
  }
  for (std::string& field : fields) field = std::string(Trim(field));
  return fields;
}

// The same without copies, for a line that has no quotes: calls visit(number, field) for each.
template <class Visit>
std::size_t VisitFields(std::string_view line, char delimiter, Visit visit) {
  if (line.find('"') != std::string_view::npos) {
    const auto fields = SplitFields(line, delimiter);
    for (std::size_t i = 0; i < fields.size(); ++i) visit(i, std::string_view(fields[i]));
    return fields.size();
  }
  std::size_t count = 0;
  while (true) {
    if (line.size() > 1 && line[1] == delimiter && line[0] > ' ' &&
        line[0] != delimiter) {  // one character: most of them
      visit(count++, line.substr(0, 1));
      line.remove_prefix(2);
      continue;
    }
    const std::size_t end = line.find(delimiter);
    visit(count++, Trim(line.substr(0, end)));
    if (end == std::string_view::npos) return count;
    line.remove_prefix(end + 1);
  }
}

// The lines of the head with their numbers, without blank ones; a line end inside quotes is none.
struct HeadLine {
  std::uint64_t number;
  std::string_view text;
};
std::vector<HeadLine> HeadLines(std::string_view head, std::size_t most) {
  std::vector<HeadLine> lines;
  bool inside = false;
  std::size_t begin = 0;
  std::uint64_t number = 1;
  for (std::size_t i = 0; i <= head.size() && lines.size() < most; ++i) {
    if (i < head.size() && head[i] == '"') inside = !inside;
    if (i < head.size() && (head[i] != '\n' || inside)) continue;
    std::string_view line = head.substr(begin, i - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!Trim(line).empty()) lines.push_back({number, line});
    begin = i + 1;
    ++number;
  }
  return lines;
}

char InferDelimiter(const std::vector<HeadLine>& lines) {
  char best = ',';
  std::size_t best_columns = 1;
  for (const char candidate : {',', '\t', ';', '|', ' '}) {
    const std::size_t columns = SplitFields(lines[0].text, candidate).size();
    const std::size_t looked_at = std::min<std::size_t>(lines.size(), 20);
    const bool same =
        std::all_of(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(looked_at),
                    [&](const HeadLine& line) { return SplitFields(line.text, candidate).size() == columns; });
    if (same && columns > best_columns) {
      best = candidate;
      best_columns = columns;
    }
  }
  return best;
}

Result<char> Delimiter(const InputOptions& options, const std::vector<HeadLine>& lines) {
  if (options.delimiter.empty()) return InferDelimiter(lines);
  if (options.delimiter == "tab" || options.delimiter == "\\t") return '\t';
  if (options.delimiter.size() != 1)
    return Error{Code::kInvalid, Str("--delimiter ", Quoted(options.delimiter), ": expected one character, or tab")};
  constexpr std::string_view kTaken = "+-.eE\"\r\n0123456789";
  if (options.delimiter[0] == '\0' || kTaken.find(options.delimiter[0]) != std::string_view::npos)
    return Error{Code::kInvalid, Str("--delimiter ", Quoted(options.delimiter),
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

std::size_t GuessLabelColumn(const std::vector<Column>& columns) {
  for (const std::string_view name : {"label", "target", "class", "y", "Label", "Target", "Class"})
    for (std::size_t i = 0; i < columns.size(); ++i)
      if (columns[i].name == name) return i;
  return columns.size() - 1;
}

bool LooksLike(const Head& head) {
  const std::string_view start = head.bytes.substr(0, 4096);
  if (start.find('\0') != std::string_view::npos) return false;
  const auto lines = HeadLines(start, 3);
  return !lines.empty() && SplitFields(lines[0].text, InferDelimiter(lines)).size() > 1;
}

bool IsNumber(std::string_view field) {
  double number = 0;
  return ParseNumber(field, number);
}

// A header: the first line has text in a column where the lines after it have numbers.
bool HasHeader(const InputOptions& options, const std::vector<HeadLine>& lines, char delimiter) {
  if (options.header != "auto") return options.header == "yes";
  const auto first = SplitFields(lines[0].text, delimiter);
  std::vector<bool> may_be_name;
  for (const std::string& field : first) may_be_name.push_back(!field.empty() && !IsNumber(field));
  const std::size_t looked_at = std::min<std::size_t>(lines.size(), 20);
  for (std::size_t row = 1; row < looked_at; ++row) {
    const auto fields = SplitFields(lines[row].text, delimiter);
    for (std::size_t i = 0; i < std::min(fields.size(), may_be_name.size()); ++i)
      if (!IsNumber(fields[i])) may_be_name[i] = false;
  }
  if (lines.size() == 1) return std::all_of(may_be_name.begin(), may_be_name.end(), [](bool name) { return name; });
  return std::any_of(may_be_name.begin(), may_be_name.end(), [](bool name) { return name; });
}

// Marks columns with text in them as categories and returns the labels that were seen.
std::vector<std::string> LookAtRows(std::span<const HeadLine> rows, char delimiter, std::size_t label,
                                    std::vector<Column>& columns) {
  std::vector<std::string> labels_seen;
  std::vector<bool> is_category(columns.size());
  std::vector<std::size_t> not_numbers;
  for (const HeadLine& row : rows) {
    not_numbers.clear();
    std::string row_label;
    const std::size_t count = VisitFields(row.text, delimiter, [&](std::size_t i, std::string_view field) {
      if (i >= columns.size()) return;
      if (i == label) row_label = field;
      if (is_category[i] || (field.size() == 1 && static_cast<unsigned char>(field[0] - '0') < 10)) return;
      if (!IsNumber(field) && !IsMissing(field)) not_numbers.push_back(i);
    });
    if (count != columns.size()) continue;  // the parser will say so
    if (!IsMissing(row_label)) labels_seen.push_back(std::move(row_label));
    for (const std::size_t i : not_numbers) is_category[i] = true;
  }
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (is_category[i]) columns[i].kind = Column::Kind::kCategory;
  return labels_seen;
}

Result<void> TakeUsersWord(const InputOptions& options, std::vector<Column>& columns) {
  const auto set = [&](const std::string& name, std::string_view flag, Column::Kind kind) -> Result<void> {
    columns[TRY(FindColumn(columns, name, flag))].kind = kind;
    return {};
  };
  for (const std::string& name : options.categorical) TRY(set(name, "--categorical", Column::Kind::kCategory));
  for (const std::string& name : options.ignore) TRY(set(name, "--ignore", Column::Kind::kIgnored));
  if (!options.weight_column.empty()) TRY(set(options.weight_column, "--weight-column", Column::Kind::kWeight));
  if (!options.time_column.empty()) TRY(set(options.time_column, "--time-column", Column::Kind::kTime));
  return {};
}

std::uint64_t CountOf(const std::vector<Column>& columns, Column::Kind kind) {
  return static_cast<std::uint64_t>(
      std::count_if(columns.begin(), columns.end(), [&](const Column& c) { return c.kind == kind; }));
}

Result<void> Describe(const Head& head, const InputOptions& options, base::Files&, Description& description) {
  TRY(CheckBits(options.bits));
  const auto lines = HeadLines(head.bytes, kSampleRows + 1);
  if (lines.empty()) return Error{Code::kBadInput, Str(head.path, ":1:1: found only blank lines, expected a table")};
  const char delimiter = TRY(Delimiter(options, lines));
  description.delimiter = std::string(1, delimiter);
  description.header = HasHeader(options, lines, delimiter);
  if (description.header && lines.size() == 1)
    return Error{Code::kBadInput, Str(head.path, ":", lines[0].number + 1,
                                      ":1: found no rows below the names of the columns, expected some; use --header "
                                      "no if the first line is a row")};
  auto& columns = description.columns;
  columns.clear();
  const auto first = SplitFields(lines[0].text, delimiter);
  for (std::size_t i = 0; i < first.size(); ++i)
    columns.push_back({description.header ? first[i] : Str("column", i + 1), Column::Kind::kNumber});

  const bool has_label = options.label != kNoLabel;
  std::size_t label = columns.size();
  if (has_label)
    label = options.label.empty() ? GuessLabelColumn(columns) : TRY(FindColumn(columns, options.label, "--label"));
  const auto labels_seen = LookAtRows(std::span(lines).subspan(description.header ? 1 : 0), delimiter, label, columns);
  TRY(TakeUsersWord(options, columns));
  if (has_label) columns[label].kind = Column::Kind::kLabel;

  const bool categories = CountOf(columns, Column::Kind::kCategory) > 0;
  description.features = CountOf(columns, Column::Kind::kNumber);
  if (!categories && description.features == 0)
    return Error{Code::kBadInput, Str(head.path, ":1:1: found no column to learn from, expected one beside the label")};
  description.bits = options.bits;
  if (options.bits > 0 && description.features > (1ull << options.bits))
    return Error{Code::kInvalid,
                 Str("--bits ", options.bits, ": ", description.features, " numeric columns do not fit in")};
  description.dense = !categories;
  description.standardise = options.standardise && description.features > 0;
  if (description.standardise) description.moments = Moments(description.features);
  if (categories && options.bits == 0) description.dictionaries.resize(1);
  if (has_label) return SettleLabels(head, options, labels_seen, description.labels);
  description.labels = {};
  description.labels.kind = Labels::Kind::kReal;
  return {};
}

// Whether a description, which may come from a file, holds together: the parser relies on it.
Result<void> CheckDescription(const Description& description) {
  const auto& columns = description.columns;
  const bool categories = CountOf(columns, Column::Kind::kCategory) > 0;
  const bool sound = description.delimiter.size() == 1 && !columns.empty() &&
                     CountOf(columns, Column::Kind::kNumber) == description.features &&
                     description.dense == !categories && CountOf(columns, Column::Kind::kLabel) <= 1 &&
                     (!categories || description.bits > 0 || description.dictionaries.size() == 1);
  if (sound) return {};
  return Error{Code::kCorrupt, "input description: the columns of the table do not fit together"};
}

// The fields of this file: by header names where there are some (order may differ), else by position. The label may be
// missing altogether when rows need none.
Result<std::vector<CsvField>> FieldsOf(const Head& head, const Description& description, bool labelled) {
  std::vector<CsvField> known;
  std::uint32_t numbers = 0, categories = 0;
  for (std::size_t i = 0; i < description.columns.size(); ++i) {
    const Column::Kind kind = description.columns[i].kind;
    const std::uint32_t feature =
        kind == Column::Kind::kNumber ? numbers++ : (kind == Column::Kind::kCategory ? categories++ : 0);
    known.push_back({kind, feature, i + 1});
  }
  const auto lines = HeadLines(head.bytes, 1);
  if (lines.empty()) return known;
  const auto first = SplitFields(lines[0].text, description.delimiter[0]);
  std::vector<CsvField> fields;
  if (!description.header) {
    if (labelled || first.size() != known.size() - 1) return known;
    for (const auto& field : known)
      if (field.kind != Column::Kind::kLabel) fields.push_back(field);
    return fields;
  }
  std::vector<bool> found(known.size());
  for (const std::string& name : first) {
    std::size_t i = 0;  // names may stand twice: the first goes with the first
    while (i < known.size() && (found[i] || description.columns[i].name != name)) ++i;
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
    return Error{
        Code::kInvalid,
        "--label none: these rows have no label, and learning or evaluating needs one; name its column with --label"};
  return MakeCsvParser(description, TRY(FieldsOf(head, description, labelled)), labelled);
}

}  // namespace

extern const Format kCsv = {"csv", "a table: columns by comma, tab, semicolon or bar; first line may name them",
                            LooksLike, Describe, Make};

}  // namespace freshet::data
