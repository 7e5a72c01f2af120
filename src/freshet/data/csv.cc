// Comma-, tab-, semicolon- or bar-separated tables with RFC 4180 quoting. Types are inferred on the head of the data and
// then enforced. Numeric columns come first among a row's features; categories follow, hashed or by dictionary.

#include <algorithm>
#include <array>
#include <cmath>

#include "base/random.h"
#include "data/format.h"
#include "data/number.h"

namespace freshet::data {
namespace {

constexpr std::size_t kSampleRows = 10'000;
constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

bool IsMissing(std::string_view field) {
  static constexpr std::array<std::string_view, 9> kWords = {"", "NA", "nan", "NaN", "?", "null", "NULL", "N/A", "na"};
  return std::find(kWords.begin(), kWords.end(), field) != kWords.end();
}

// One line of fields, unquoted and trimmed; for the head, where speed does not matter.
std::vector<std::string> SplitFields(std::string_view line, char delimiter) {
  std::vector<std::string> fields(1);
  bool inside = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (inside && line[i] == '"' && i + 1 < line.size() && line[i + 1] == '"') fields.back() += line[++i];
    else if (line[i] == '"') inside = !inside;
    else if (line[i] == delimiter && !inside) fields.emplace_back();
    else fields.back() += line[i];
  }
  for (std::string& field : fields) field = std::string(Trim(field));
  return fields;
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
    const std::string_view line = Trim(head.substr(begin, i - begin));
    if (!line.empty()) lines.push_back({number, line});
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
    const bool same = std::all_of(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(looked_at), [&](const HeadLine& line) {
      return SplitFields(line.text, candidate).size() == columns;
    });
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

class CsvParser final : public Parser {
 public:
  // What each field of this very file is: its kind, and for a feature which one.
  struct Field {
    Column::Kind kind;
    std::uint32_t feature;  // number of the numeric column, or of the category column
    std::uint64_t seed;     // for hashing a category
  };
  CsvParser(const Description& description, std::vector<Field> fields, bool labelled)
      : description_(description), fields_(std::move(fields)), labelled_(labelled), delimiter_(description.delimiter[0]) {
    for (const Field& field : fields_) {
      has_weight_ |= field.kind == Column::Kind::kWeight;
      has_time_ |= field.kind == Column::Kind::kTime;
    }
  }

  Cutting cutting() const override { return {.kind = Cutting::Kind::kQuotedLines}; }

  void Parse(Rows& rows) const override {
    char* at = rows.text.data();
    const char* const end = at + rows.text.size();
    rows.width = description_.dense ? description_.features : 0;
    std::uint64_t line = 0;
    while (at < end) {
      char* const begin = at;
      if (*at == '\n' || (*at == '\r' && at[1] == '\n')) {
        at += *at == '\n' ? 1 : 2;
        ++line;
        continue;
      }
      const std::size_t before = rows.size();
      Mistake mistake;
      at = ParseRow(at, end, rows, mistake);
      if (mistake.at != nullptr) [[unlikely]] {
        const char* const stop = LineEnd(begin, end);
        NoteBadRow(rows, line, begin, stop, mistake.at, std::move(mistake.what));
        rows.Truncate(before);
        at = begin + (stop - begin) + 1;
      }
      line += static_cast<std::uint64_t>(std::count(begin, at, '\n'));  // a quoted field may hold line ends
    }
    rows.lines = line;
  }

 private:
  struct Mistake {
    const char* at = nullptr;
    std::string what;
  };

  // The end of the line that begins at `at`, minding quotes; a quote that never closes ends at the first line end.
  static const char* LineEnd(const char* at, const char* end) {
    bool inside = false;
    const char* first = nullptr;
    for (const char* p = at; p < end; ++p) {
      if (*p == '"') inside = !inside;
      if (*p != '\n') continue;
      if (!inside) return p;
      if (first == nullptr) first = p;
    }
    return first == nullptr ? end - 1 : first;
  }

  bool AtFieldEnd(const char* at) const {
    return *at == delimiter_ || *at == '\n' || (*at == '\r' && at[1] == '\n');
  }

  // Takes the field at `at` as text, unquoting in place. Sets `at` to what ends it, or leaves a mistake.
  std::string_view TakeField(char*& at, const char* end, Mistake& mistake) const {
    while (*at == ' ' && delimiter_ != ' ') ++at;
    if (*at != '"') {
      char* const begin = at;
      while (!AtFieldEnd(at)) ++at;
      const char* stop = at;
      while (stop > begin && stop[-1] == ' ') --stop;
      return {begin, static_cast<std::size_t>(stop - begin)};
    }
    char* const begin = ++at;
    char* out = begin;
    while (true) {
      if (at >= end) {
        mistake = {begin - 1, "a quote that is never closed, expected \" before the end of the line"};
        return {};
      }
      if (*at == '"' && at[1] == '"') ++at;
      else if (*at == '"') break;
      *out++ = *at++;
    }
    ++at;
    while (*at == ' ' && delimiter_ != ' ') ++at;
    if (!AtFieldEnd(at)) mistake = {at, Str("found ", Quoted({at, 1}), " after a closing quote, expected ", Quoted({&delimiter_, 1}))};
    return {begin, static_cast<std::size_t>(out - begin)};
  }

  // A number, or NaN for a missing one. Plain numbers take the fast way, without looking for the end of the field first.
  double TakeNumber(char*& at, const char* end, Mistake& mistake) const {
    char* const begin = at;
    double number = 0;
    const char* const stop = ParseDouble(at, end, number);
    if (stop != nullptr && AtFieldEnd(stop)) [[likely]] {
      at += stop - at;
      if (std::abs(number) <= std::numeric_limits<float>::max()) [[likely]] return number;
    }
    at = begin;
    const std::string_view field = TakeField(at, end, mistake);
    if (mistake.at != nullptr || IsMissing(field)) return kMissing;
    if (!ParseNumber(field, number)) mistake = {begin, Str("found ", Quoted(field), ", expected a number, as in the first rows; list the column under --categorical if it is one")};
    else if (!std::isfinite(static_cast<float>(number))) mistake = {begin, Str("found ", Quoted(field), ", expected a finite number")};
    return number;
  }

  char* ParseRow(char* at, const char* end, Rows& rows, Mistake& mistake) const {
    float* numbers = nullptr;
    const std::size_t start = rows.indices.size();
    const auto features = static_cast<std::size_t>(description_.features);
    if (description_.dense) {
      numbers = rows.dense.Room(features);
    } else {
      std::uint32_t* const index = rows.indices.Room(fields_.size());
      numbers = rows.values.Room(fields_.size());
      for (std::size_t j = 0; j < features; ++j) index[j] = static_cast<std::uint32_t>(j);
      rows.indices.Resize(start + features);
      rows.values.Resize(start + features);
    }
    const char* const begin = at;
    float label = kMissing;
    float weight = 1;
    std::int64_t time = 0;
    std::size_t taken = 0;
    for (const Field& field : fields_) {
      const char* const field_begin = at;
      switch (field.kind) {
        case Column::Kind::kNumber:
          if (static_cast<unsigned char>(*at - '0') < 10 && at[1] == delimiter_) {  // one digit: most of what there is
            numbers[field.feature] = static_cast<float>(*at - '0');
            at += 1;
          } else {
            numbers[field.feature] = static_cast<float>(TakeNumber(at, end, mistake));
          }
          break;
        case Column::Kind::kLabel: label = TakeLabel(at, end, mistake); break;
        case Column::Kind::kCategory: TakeCategory(at, end, field, rows, mistake); break;
        case Column::Kind::kWeight:
          weight = static_cast<float>(TakeNumber(at, end, mistake));
          if (mistake.at == nullptr && !(weight >= 0)) mistake = {field_begin, "found a weight that is missing or below 0, expected 0 or more"};
          break;
        case Column::Kind::kTime: time = static_cast<std::int64_t>(TakeNumber(at, end, mistake)); break;
        case Column::Kind::kIgnored: TakeField(at, end, mistake); break;
      }
      if (mistake.at != nullptr) [[unlikely]] return at;
      ++taken;
      if (*at != delimiter_) break;
      if (taken < fields_.size()) ++at;
    }
    if (taken < fields_.size() || *at == delimiter_) [[unlikely]] {
      const std::size_t found = SplitFields({begin, static_cast<std::size_t>(LineEnd(begin, end) - begin)}, delimiter_).size();
      mistake = {at, Str("found ", found, " columns, expected ", fields_.size())};
      return at;
    }
    if (labelled_ && std::isnan(label)) [[unlikely]] {
      mistake = {begin, Str("no label in this row, expected ", description_.labels.Expected())};
      return at;
    }
    rows.labels.Append(label);
    if (has_weight_) rows.weights.Append(weight);
    if (has_time_) rows.times.Append(time);
    if (description_.dense) rows.dense.SetEnd(numbers + features);
    else rows.offsets.Append(static_cast<std::uint32_t>(rows.indices.size()));
    return at + (*at == '\r' ? 2 : 1);
  }

  float TakeLabel(char*& at, const char* end, Mistake& mistake) const {
    const char* const begin = at;
    double number = 0;
    const char* const stop = ParseDouble(at, end, number);
    float label;
    if (stop != nullptr && AtFieldEnd(stop)) [[likely]] {
      at += stop - at;
      label = description_.labels.Map(number);
    } else {
      const std::string_view field = TakeField(at, end, mistake);
      if (mistake.at != nullptr || IsMissing(field)) return kMissing;
      label = description_.labels.Map(field);
    }
    if (!std::isfinite(label) && labelled_)
      mistake = {begin, Str("label ", Quoted({begin, static_cast<std::size_t>(at - begin)}), ", expected ", description_.labels.Expected())};
    return label;
  }

  void TakeCategory(char*& at, const char* end, const Field& field, Rows& rows, Mistake& mistake) const {
    const std::string_view text = TakeField(at, end, mistake);
    if (mistake.at != nullptr || IsMissing(text)) return;
    std::uint32_t index = 0;
    if (description_.bits > 0) {
      index = static_cast<std::uint32_t>(base::Hash64(text, field.seed)) & ((1u << description_.bits) - 1);
    } else {
      rows.tokens.push_back({static_cast<std::uint32_t>(rows.indices.size()), field.feature,
                             static_cast<std::uint32_t>(text.data() - rows.text.data()), static_cast<std::uint32_t>(text.size())});
    }
    rows.indices.Append(index);
    rows.values.Append(1.0f);
  }

  const Description& description_;
  const std::vector<Field> fields_;
  const bool labelled_;
  const char delimiter_;
  bool has_weight_ = false, has_time_ = false;
};

bool LooksLike(const Head& head) {
  const std::string_view start = head.bytes.substr(0, 4096);
  if (start.find('\0') != std::string_view::npos) return false;
  const auto lines = HeadLines(start, 3);
  return !lines.empty() && SplitFields(lines[0].text, InferDelimiter(lines)).size() > 1;
}

Result<void> Describe(const Head& head, const InputOptions& options, base::Files&, Description& description) {
  const auto lines = HeadLines(head.bytes, kSampleRows + 1);
  if (lines.empty()) return Error{Code::kBadInput, Str(head.path, ": no rows, only blank lines")};
  const char delimiter = TRY(Delimiter(options, lines));
  description.delimiter = std::string(1, delimiter);
  const auto first = SplitFields(lines[0].text, delimiter);
  // A header: no field of the first line is a number or missing, and there is a second line where some field is.
  const auto is_number = [](const std::string& field) {
    double number = 0;
    return ParseNumber(field, number);
  };
  if (options.header == "auto") {
    description.header = std::none_of(first.begin(), first.end(), is_number) &&
                         std::none_of(first.begin(), first.end(), [](const std::string& f) { return f.empty(); });
    if (description.header && lines.size() > 1) {
      const auto second = SplitFields(lines[1].text, delimiter);
      description.header = std::any_of(second.begin(), second.end(), is_number);
    }
  } else {
    description.header = options.header == "yes";
  }
  description.columns.clear();
  for (std::size_t i = 0; i < first.size(); ++i)
    description.columns.push_back({description.header ? first[i] : Str("column", i + 1), Column::Kind::kNumber});
  auto& columns = description.columns;

  const std::size_t label = options.label.empty() ? GuessLabelColumn(columns) : TRY(FindColumn(columns, options.label, "--label"));
  std::vector<std::string> labels_seen;
  for (std::size_t row = description.header ? 1 : 0; row < lines.size(); ++row) {
    const auto fields = SplitFields(lines[row].text, delimiter);
    if (fields.size() != columns.size()) continue;  // the parser will say so
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (i == label && !IsMissing(fields[i])) labels_seen.push_back(fields[i]);
      if (!IsMissing(fields[i]) && !is_number(fields[i])) columns[i].kind = Column::Kind::kCategory;
    }
  }
  for (const std::string& name : options.categorical) columns[TRY(FindColumn(columns, name, "--categorical"))].kind = Column::Kind::kCategory;
  for (const std::string& name : options.ignore) columns[TRY(FindColumn(columns, name, "--ignore"))].kind = Column::Kind::kIgnored;
  if (!options.weight_column.empty()) columns[TRY(FindColumn(columns, options.weight_column, "--weight-column"))].kind = Column::Kind::kWeight;
  if (!options.time_column.empty()) columns[TRY(FindColumn(columns, options.time_column, "--time-column"))].kind = Column::Kind::kTime;
  columns[label].kind = Column::Kind::kLabel;

  bool categories = false;
  description.features = 0;
  for (const Column& column : columns) {
    categories |= column.kind == Column::Kind::kCategory;
    description.features += column.kind == Column::Kind::kNumber ? 1 : 0;
  }
  if (!categories && description.features == 0) return Error{Code::kBadInput, Str(head.path, ": no column is left to learn from")};
  description.bits = options.bits;
  if (options.bits > 0 && description.features > (1ull << options.bits))
    return Error{Code::kInvalid, Str("--bits ", options.bits, ": ", description.features, " numeric columns do not fit in")};
  description.dense = !categories;
  description.standardise = options.standardise && description.features > 0;
  if (description.standardise) description.moments = Moments(description.features);
  if (categories && options.bits == 0) description.dictionaries.resize(1);
  return SettleLabels(options, labels_seen, description.labels);
}

// The fields of this file: by header names where there are some (order may differ), else by position. The label may be
// missing altogether when rows need none.
Result<std::vector<CsvParser::Field>> FieldsOf(const Head& head, const Description& description, bool labelled) {
  std::vector<CsvParser::Field> known;
  std::uint32_t numbers = 0, categories = 0;
  for (std::size_t i = 0; i < description.columns.size(); ++i) {
    const Column::Kind kind = description.columns[i].kind;
    const std::uint32_t feature = kind == Column::Kind::kNumber ? numbers++ : (kind == Column::Kind::kCategory ? categories++ : 0);
    known.push_back({kind, feature, i + 1});
  }
  const auto lines = HeadLines(head.bytes, 1);
  if (lines.empty()) return known;
  const auto first = SplitFields(lines[0].text, description.delimiter[0]);
  std::vector<CsvParser::Field> fields;
  if (!description.header) {
    if (labelled || first.size() != known.size() - 1) return known;
    for (const auto& field : known)
      if (field.kind != Column::Kind::kLabel) fields.push_back(field);
    return fields;
  }
  std::vector<bool> found(known.size());
  for (const std::string& name : first) {
    const auto at = std::find_if(description.columns.begin(), description.columns.end(), [&](const Column& c) { return c.name == name; });
    if (at == description.columns.end()) {
      fields.push_back({Column::Kind::kIgnored, 0, 0});
      continue;
    }
    const auto i = static_cast<std::size_t>(at - description.columns.begin());
    fields.push_back(known[i]);
    found[i] = true;
  }
  for (std::size_t i = 0; i < known.size(); ++i) {
    const Column::Kind kind = known[i].kind;
    const bool optional = kind == Column::Kind::kIgnored || kind == Column::Kind::kWeight || kind == Column::Kind::kTime ||
                          (kind == Column::Kind::kLabel && !labelled);
    if (!found[i] && !optional)
      return Error{Code::kBadInput, Str(head.path, ":1:1: no column ", Quoted(description.columns[i].name), " in the header, the model was trained with one")};
  }
  return fields;
}

Result<std::unique_ptr<Parser>> Make(const Head& head, const Description& description, const InputOptions&, base::Files&, bool labelled) {
  return std::unique_ptr<Parser>(std::make_unique<CsvParser>(description, TRY(FieldsOf(head, description, labelled)), labelled));
}

}  // namespace

extern const Format kCsv = {"csv", "a table: columns by comma, tab, semicolon or bar; first line may name them", LooksLike, Describe, Make};

}  // namespace freshet::data
