// Comma-, tab-, semicolon- or bar-separated tables with RFC 4180 quoting. Types are inferred on the head of the data
// and then enforced. Numeric columns come first among a row's features; categories follow, hashed or by dictionary.

#include <algorithm>
#include <array>
#include <cmath>

#include "base/random.h"
#include "data/format.h"
#include "data/lines.h"
#include "data/number.h"

namespace freshet::data {
namespace {

constexpr std::size_t kSampleRows = 10'000;
constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();
constexpr std::string_view kNoLabel = "none";  // what a user says when no column is the label

bool IsMissing(std::string_view field) {
  static constexpr std::array<std::string_view, 9> kWords = {"", "NA", "nan", "NaN", "?", "null", "NULL", "N/A", "na"};
  return std::find(kWords.begin(), kWords.end(), field) != kWords.end();
}

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

class CsvParser final : public Parser {
 public:
  // What each field of this very file is: its kind, and for a feature which one.
  struct Field {
    Column::Kind kind;
    std::uint32_t feature;  // number of the numeric column, or of the category column
    std::uint64_t seed;     // for hashing a category
    bool four = false;      // this and the next three are numeric columns, one after another
  };
  CsvParser(const Description& description, std::vector<Field> fields, bool labelled)
      : description_(description),
        fields_(std::move(fields)),
        labelled_(labelled),
        delimiter_(description.delimiter[0]),
        missing_(description.standardise ? kMissing : 0.0f) {
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      has_weight_ |= fields_[i].kind == Column::Kind::kWeight;
      has_time_ |= fields_[i].kind == Column::Kind::kTime;
      bool four = i + 4 < fields_.size();
      for (std::size_t j = i; four && j < i + 4; ++j)
        four = fields_[j].kind == Column::Kind::kNumber && fields_[j].feature == fields_[i].feature + (j - i);
      fields_[i].four = four;
    }
    const std::uint64_t pair = '0' | static_cast<std::uint64_t>(static_cast<unsigned char>(delimiter_)) << 8;
    four_zeros_ = pair | pair << 16 | pair << 32 | pair << 48;
  }

  Cutting cutting() const override { return {.kind = Cutting::Kind::kQuotedLines}; }

  void Parse(Rows& rows) const override {
    const char* at = rows.text.data();
    const char* const end = at + rows.text.size();
    const bool has_nul = std::memchr(at, '\0', rows.text.size()) != nullptr;
    rows.width = description_.dense ? description_.features : 0;
    std::uint64_t line = 0;
    while (at < end) {
      const char* const begin = at;
      at = SkipSpaces(at);
      if (AtRowEnd(at)) {  // a blank line
        at = BehindRow(at);
        ++line;
        continue;
      }
      const std::size_t before = rows.size();
      Mistake mistake;
      if (has_nul) [[unlikely]]
        at = CheckForNul(begin, end, mistake);
      if (mistake.at == nullptr) at = ParseRow(begin, end, rows, mistake);
      if (mistake.at != nullptr) [[unlikely]] {
        at = RestOfRow(at, end);
        NoteBadRow(rows, line, begin, at, mistake.at, std::move(mistake.what));
        rows.Truncate(before);
        at = BehindRow(at);
      }
      line +=
          static_cast<std::uint64_t>(std::count(begin, std::min(at, end), '\n'));  // a quoted field may hold line ends
    }
  }

 private:
  // A field as it stands; from between quotes if it had some, where a doubled quote stands for one.
  struct Text {
    std::string_view raw;
    bool doubled_quotes = false;

    // The text itself; `room` is for those that differ.
    std::string_view Value(std::string& room) const {
      if (!doubled_quotes) return raw;
      return room = Undoubled(raw);
    }
  };

  static bool AtRowEnd(const char* at) { return *at == '\n' || (*at == '\r' && at[1] == '\n'); }
  static const char* BehindRow(const char* at) { return at + (*at == '\r' ? 2 : 1); }
  bool AtFieldEnd(const char* at) const { return *at == delimiter_ || AtRowEnd(at); }
  const char* FieldEnd(const char* at) const {
    while (!AtFieldEnd(at)) ++at;
    return at;
  }
  const char* SkipSpaces(const char* at) const {
    while (IsBlank(*at) && *at != delimiter_) ++at;
    return at;
  }

  // The quote that closes what begins at `at`, behind an opening one; null when none does.
  static const char* ClosingQuote(const char* at, const char* end, bool& doubled_quotes) {
    while (true) {
      at = static_cast<const char*>(std::memchr(at, '"', static_cast<std::size_t>(end - at)));
      if (at == nullptr || at[1] != '"') return at;
      doubled_quotes = true;
      at += 2;
    }
  }

  // Where the row ends whose next field begins at `at`, and how many more fields it has. A quote that is never closed
  // is taken for an ordinary letter, so that one of them costs one row and not all that follow.
  const char* RowEnd(const char* at, const char* end, std::size_t& fields) const {
    while (true) {
      ++fields;
      at = SkipSpaces(at);
      bool doubled_quotes = false;
      const char* const close = *at == '"' ? ClosingQuote(at + 1, end, doubled_quotes) : nullptr;
      at = FieldEnd(close == nullptr ? at : close + 1);
      if (*at != delimiter_) return at;
      ++at;
    }
  }

  // The same from anywhere in a field that is not between quotes.
  const char* RestOfRow(const char* at, const char* end) const {
    at = FieldEnd(at);
    std::size_t fields = 0;
    return *at == delimiter_ ? RowEnd(at + 1, end, fields) : at;
  }

  // Returns where the row ends.
  const char* CheckForNul(const char* begin, const char* end, Mistake& mistake) const {
    std::size_t fields = 0;
    const char* const stop = RowEnd(begin, end, fields);
    HasNul({begin, static_cast<std::size_t>(stop - begin)}, mistake);
    return stop;
  }

  // Takes the field at `at`. Sets `at` to what ends it, or leaves a mistake and `at` outside of quotes.
  Text TakeField(const char*& at, const char* end, Mistake& mistake) const {
    at = SkipSpaces(at);
    if (*at != '"') {
      const char* const begin = at;
      at = FieldEnd(at);
      const char* stop = at;
      while (stop > begin && IsBlank(stop[-1])) --stop;
      return {{begin, static_cast<std::size_t>(stop - begin)}};
    }
    const char* const begin = at + 1;
    bool doubled_quotes = false;
    const char* const close = ClosingQuote(begin, end, doubled_quotes);
    if (close == nullptr) {
      mistake = {at, "found a quote that is never closed, expected another before the end of the line"};
      return {};
    }
    at = SkipSpaces(close + 1);
    if (!AtFieldEnd(at))
      mistake = {at, Str("found ", Quoted({at, 1}), " after a closing quote, expected ", Quoted({&delimiter_, 1}))};
    return {{begin, static_cast<std::size_t>(close - begin)}, doubled_quotes};
  }

  // A number, or `missing` when there is none. Plain numbers take the fast way, without looking for the end of the
  // field.
  double TakeNumber(const char*& at, const char* end, float missing, Mistake& mistake) const {
    const char* const begin = at;
    double number = 0;
    const char* const stop = ParseDouble(at, end, number);
    if (stop != nullptr && AtFieldEnd(stop) && std::abs(number) <= std::numeric_limits<float>::max()) [[likely]] {
      at = stop;
      return number;
    }
    const Text field = TakeField(at, end, mistake);
    if (mistake.at != nullptr || IsMissing(field.raw)) return missing;
    if (field.doubled_quotes || !ParseNumber(field.raw, number))
      mistake = {begin, Str("found ", Quoted(field.raw),
                            ", expected a number, as in the first rows; list the column "
                            "under --categorical if it is one")};
    else if (!std::isfinite(static_cast<float>(number)))
      mistake = {begin, Str("found ", Quoted(field.raw), ", expected a finite number")};
    return number;
  }

  // Reads the row at `at` and returns where the next begins; on a mistake a place outside of quotes in the same row.
  const char* ParseRow(const char* at, const char* end, Rows& rows, Mistake& mistake) const {
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
    while (true) {
      const Field& field = fields_[taken];
      switch (field.kind) {
        case Column::Kind::kNumber:
          if (field.four) {
            // Four columns of 0 or 1 at once ("0,1,0,0,"): what one-hot columns look like.
            const std::uint64_t word = number_detail::Load8(at);
            if ((word & ~0x0001000100010001u) == four_zeros_) {
              for (std::size_t j = 0; j < 4; ++j) numbers[field.feature + j] = static_cast<float>(word >> (16 * j) & 1);
              at += 8;
              taken += 4;
              continue;
            }
          }
          if (static_cast<unsigned char>(*at - '0') < 10 && at[1] == delimiter_) {  // one digit: most of what there is
            numbers[field.feature] = static_cast<float>(*at - '0');
            at += 1;
          } else {
            numbers[field.feature] = static_cast<float>(TakeNumber(at, end, missing_, mistake));
          }
          break;
        case Column::Kind::kLabel:
          label = TakeLabel(at, end, mistake);
          break;
        case Column::Kind::kCategory:
          TakeCategory(at, end, field, rows, mistake);
          break;
        case Column::Kind::kWeight:
          weight = TakeWeight(at, end, mistake);
          break;
        case Column::Kind::kTime:
          time = TakeTime(at, end, mistake);
          break;
        case Column::Kind::kIgnored:
          TakeField(at, end, mistake);
          break;
      }
      if (mistake.at != nullptr) [[unlikely]]
        return at;
      ++taken;
      if (*at != delimiter_ || taken == fields_.size()) break;
      ++at;
    }
    if (taken < fields_.size() || *at == delimiter_) [[unlikely]] {
      std::size_t found = 0;
      RowEnd(begin, end, found);
      mistake = {at, Str("found ", found, found == 1 ? " column" : " columns", ", expected ", fields_.size())};
      return at;
    }
    if (labelled_ && std::isnan(label)) [[unlikely]] {
      mistake = {begin, Str("found no label in this row, expected ", description_.labels.Expected())};
      return at;
    }
    rows.labels.Append(label);
    if (has_weight_) rows.weights.Append(weight);
    if (has_time_) rows.times.Append(time);
    if (description_.dense)
      rows.dense.SetEnd(numbers + features);
    else
      rows.offsets.Append(static_cast<std::uint32_t>(rows.indices.size()));
    return BehindRow(at);
  }

  float TakeLabel(const char*& at, const char* end, Mistake& mistake) const {
    const char* const begin = at;
    double number = 0;
    const char* const stop = ParseDouble(at, end, number);
    float label;
    if (stop != nullptr && AtFieldEnd(stop)) [[likely]] {
      at = stop;
      label = description_.labels.Map(number);
    } else {
      const Text field = TakeField(at, end, mistake);
      if (mistake.at != nullptr || IsMissing(field.raw)) return kMissing;
      std::string room;
      label = description_.labels.Map(field.Value(room));
    }
    if (std::isfinite(label)) return label;
    if (labelled_)
      mistake = {begin, Str("label ", Quoted({begin, static_cast<std::size_t>(at - begin)}), ", expected ",
                            description_.labels.Expected())};
    return kMissing;
  }

  float TakeWeight(const char*& at, const char* end, Mistake& mistake) const {
    const char* const begin = at;
    const double weight = TakeNumber(at, end, kMissing, mistake);
    if (mistake.at == nullptr && !(weight >= 0))
      mistake = {begin,
                 Str("found weight ", Quoted({begin, static_cast<std::size_t>(at - begin)}), ", expected 0 or more")};
    return static_cast<float>(weight);
  }

  std::int64_t TakeTime(const char*& at, const char* end, Mistake& mistake) const {
    const char* const begin = at;
    const double time = TakeNumber(at, end, kMissing, mistake);
    if (std::abs(time) < 0x1p63) [[likely]]
      return static_cast<std::int64_t>(time);
    if (mistake.at == nullptr)
      mistake = {begin, Str("found time ", Quoted({begin, static_cast<std::size_t>(at - begin)}),
                            ", expected seconds since 1970")};
    return 0;
  }

  void TakeCategory(const char*& at, const char* end, const Field& field, Rows& rows, Mistake& mistake) const {
    const Text text = TakeField(at, end, mistake);
    if (mistake.at != nullptr || IsMissing(text.raw)) return;
    std::uint32_t index = 0;
    if (description_.bits > 0) {
      std::string room;
      index = static_cast<std::uint32_t>(base::Hash64(text.Value(room), field.seed)) & ((1u << description_.bits) - 1);
    } else {
      rows.tokens.push_back({static_cast<std::uint32_t>(rows.indices.size()), field.feature,
                             static_cast<std::uint32_t>(text.raw.data() - rows.text.data()),
                             static_cast<std::uint32_t>(text.raw.size()), text.doubled_quotes});
    }
    rows.indices.Append(index);
    rows.values.Append(1.0f);
  }

  const Description& description_;
  std::vector<Field> fields_;
  const bool labelled_;
  const char delimiter_;
  const float missing_;  // what a missing number becomes: standardisation knows what to do with NaN
  bool has_weight_ = false, has_time_ = false;
  std::uint64_t four_zeros_ = 0;  // "0,0,0,0,"
};

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
Result<std::vector<CsvParser::Field>> FieldsOf(const Head& head, const Description& description, bool labelled) {
  std::vector<CsvParser::Field> known;
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
  std::vector<CsvParser::Field> fields;
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
    fields.push_back(i < known.size() ? known[i] : CsvParser::Field{Column::Kind::kIgnored, 0, 0});
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
  return std::unique_ptr<Parser>(
      std::make_unique<CsvParser>(description, TRY(FieldsOf(head, description, labelled)), labelled));
}

}  // namespace

extern const Format kCsv = {"csv", "a table: columns by comma, tab, semicolon or bar; first line may name them",
                            LooksLike, Describe, Make};

}  // namespace freshet::data
