// Ratings as MovieLens writes them:  user item rating [timestamp]  between tabs, "::" or commas, with or without a
// header. Users and items are names: any text, turned into numbers by a dictionary each.

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>

#include "data/formats/format.h"
#include "data/formats/lines.h"
#include "data/formats/ratings_columns.h"
#include "data/number.h"

namespace freshet::data {
namespace {

enum : std::size_t { kUser, kItem, kRating, kTime, kMostFields };

constexpr std::array<std::string_view, kMostFields> kFieldNames = {"user", "item", "rating", "timestamp"};

struct Fields {
  std::array<std::string_view, kMostFields> at;  // the first `count` of them, or all when there are more
  std::size_t count = 0;
  const char* extra = nullptr;  // where the first one too many begins
};

// Empty columns at the end do not count.
Fields SplitFields(std::string_view line, std::string_view delimiter) {
  Fields fields;
  while (line.ends_with(delimiter)) line.remove_suffix(delimiter.size());
  while (true) {
    const std::size_t stop = line.find(delimiter);
    if (fields.count < kMostFields)
      fields.at[fields.count] = line.substr(0, stop);
    else if (fields.count == kMostFields)
      fields.extra = line.data();
    ++fields.count;
    if (stop == std::string_view::npos) return fields;
    line.remove_prefix(stop + delimiter.size());
  }
}

bool IsNumber(std::string_view text) {
  double number = 0;
  return ParseNumber(text, number) && std::isfinite(static_cast<float>(number));
}

bool IsWhole(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// A first field that says "user", "userId", "user_id" … and a rating that is no number.
bool IsHeader(const Fields& fields) {
  std::string name(fields.at[kUser].substr(0, 4));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name == "user" && (fields.count <= kRating || !IsNumber(fields.at[kRating]));
}

std::string ExpectedFields(std::size_t least, std::size_t most) {
  std::vector<std::string> names(kFieldNames.begin(), kFieldNames.begin() + static_cast<long>(most));
  return Str("expected ", least, least == most ? "" : Str(" to ", most), " (", Join(names, ", "), ")");
}

class RatingsParser final : public Parser {
 public:
  // `fields`: how many each row has; nothing: two to four, and no times are kept.
  RatingsParser(const Description& description, std::optional<std::size_t> fields)
      : delimiter_(description.delimiter),
        least_(fields.value_or(kItem + 1)),
        most_(fields.value_or(kMostFields)),
        keeps_times_(fields == kMostFields) {}

  void Parse(Rows& rows) const override {
    const char* at = rows.text.data();
    const char* const end = at + rows.text.size();
    std::uint64_t number = 0;
    for (; at < end; ++number) {
      const Line line = LineAt(at, end);
      at = line.next;
      if (line.blank()) continue;
      Mistake mistake;
      if (!ParseRow(line, rows, mistake)) [[unlikely]]
        NoteBadRow(rows, number, line.begin(), line.end(), mistake.at, std::move(mistake.what));
    }
  }

 private:
  // Appends the row when all of it is right.
  bool ParseRow(const Line& line, Rows& rows, Mistake& mistake) const {
    if (HasNul(line.text, mistake)) return false;
    const Fields fields = SplitFields(line.text, delimiter_);
    float rating = std::nanf("");
    std::int64_t time = 0;
    if (!CheckCount(line, fields, mistake)) return false;
    if (!CheckName(fields, kUser, mistake) || !CheckName(fields, kItem, mistake)) return false;
    if (fields.count > kRating && !ReadRating(fields.at[kRating], rating, mistake)) return false;
    if (fields.count > kTime && !ReadTime(fields.at[kTime], time, mistake)) return false;
    AppendName(fields.at[kUser], 0, rows);
    AppendName(fields.at[kItem], 1, rows);
    rows.offsets.Append(static_cast<std::uint32_t>(rows.indices.size()));
    rows.labels.Append(rating);
    if (keeps_times_) rows.times.Append(time);
    return true;
  }

  bool CheckCount(const Line& line, const Fields& fields, Mistake& mistake) const {
    if (fields.count >= least_ && fields.count <= most_) return true;
    const char* where = fields.extra;
    if (fields.count < least_)
      where = line.end();
    else if (fields.count <= kMostFields)
      where = fields.at[most_].data();
    mistake = {where, Str("found ", fields.count, fields.count == 1 ? " column, " : " columns, ",
                          ExpectedFields(least_, most_), " between ", Quoted(delimiter_))};
    return false;
  }

  static bool CheckName(const Fields& fields, std::size_t field, Mistake& mistake) {
    if (!fields.at[field].empty()) return true;
    mistake = {fields.at[field].data(), Str("found nothing, expected the name of the ", kFieldNames[field])};
    return false;
  }

  static bool ReadRating(std::string_view text, float& rating, Mistake& mistake) {
    const char* const end = text.data() + text.size();
    double number = 0;
    if (ParseDouble(text.data(), end, number) == end && std::isfinite(static_cast<float>(number))) {
      rating = static_cast<float>(number);
      return true;
    }
    mistake = {text.data(), Str("found ", Quoted(text), ", expected a rating (a finite number)")};
    return false;
  }

  static bool ReadTime(std::string_view text, std::int64_t& time, Mistake& mistake) {
    std::uint64_t number = 0;
    if (ParseWhole(text.data(), number) == text.data() + text.size() &&
        number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      time = static_cast<std::int64_t>(number);
      return true;
    }
    mistake = {text.data(), Str("found ", Quoted(text), ", expected a timestamp (whole seconds since 1970)")};
    return false;
  }

  static void AppendName(std::string_view name, std::uint32_t space, Rows& rows) {
    rows.tokens.push_back({static_cast<std::uint32_t>(rows.indices.size()), space,
                           static_cast<std::uint32_t>(name.data() - rows.text.data()),
                           static_cast<std::uint32_t>(name.size())});
    rows.indices.Append(0);
    rows.values.Append(1);
  }

  const std::string delimiter_;
  const std::size_t least_, most_;  // fields of a row
  const bool keeps_times_;
};

// The lines of the head that are not blank.
std::vector<std::string_view> HeadLines(const Head& head) {
  std::vector<std::string_view> lines;
  const char* const end = head.bytes.data() + head.bytes.size();
  for (const char* at = head.bytes.data(); at < end;) {
    const Line line = LineAt(at, end);
    at = line.next;
    if (!line.blank()) lines.push_back(line.text);
  }
  return lines;
}

std::string InferDelimiter(std::string_view line) {
  for (const std::string_view delimiter : {"::", "\t", ","})
    if (line.find(delimiter) != std::string_view::npos) return std::string(delimiter);
  return "";
}

// How many fields the first whole row has: 3 or 4, or 0 when there is none.
std::size_t CountFields(const std::vector<std::string_view>& lines, std::string_view delimiter) {
  for (const std::string_view line : lines) {
    const Fields fields = SplitFields(line, delimiter);
    if (fields.count > kRating && fields.count <= kMostFields && IsNumber(fields.at[kRating])) return fields.count;
  }
  return 0;
}

bool IsTypicalRow(const Fields& fields, std::string_view delimiter, bool has_header) {
  double rating = 0;
  if (!ParseNumber(fields.at[kRating], rating) || !(std::abs(rating) <= 100)) return false;
  if (delimiter == "::" || has_header) return true;
  return IsWhole(fields.at[kUser]) && IsWhole(fields.at[kItem]) && rating == std::floor(rating) &&
         (fields.count == kRating + 1 || IsWhole(fields.at[kTime]));
}

// Strict, since a table of three or four columns looks much the same: without a header only "::" and tabs will do.
bool LooksLike(const Head& head) {
  constexpr std::size_t kEnough = 20;
  const std::vector<std::string_view> lines = HeadLines({head.bytes.substr(0, 1 << 16), head.path});
  if (lines.empty()) return false;
  const std::string delimiter = InferDelimiter(lines[0]);
  if (delimiter.empty()) return false;
  const Fields first = SplitFields(lines[0], delimiter);
  const bool has_header = IsHeader(first);
  if (delimiter == "," && !has_header) return false;
  for (std::size_t i = 0; i < std::min(lines.size(), kEnough); ++i) {
    const Fields fields = SplitFields(lines[i], delimiter);
    if (fields.count != first.count || fields.count <= kRating || fields.count > kMostFields) return false;
    if (!(i == 0 && has_header) && !IsTypicalRow(fields, delimiter, has_header)) return false;
  }
  return true;
}

Result<std::string> ChooseDelimiter(const std::string& stated, std::string_view first_line, const std::string& path) {
  if (stated == "tab" || stated == "\\t") return std::string("\t");
  if (!stated.empty()) return stated;
  std::string inferred = InferDelimiter(first_line);
  if (inferred.empty())
    return Error{Code::kBadInput, Str(path, ":1:1: found ", Quoted(first_line),
                                      ", expected columns (user, item, rating) between '::', tabs or commas")};
  return inferred;
}

Result<void> Describe(const Head& head, const InputOptions& options, base::Files&, Description& description) {
  const std::vector<std::string_view> lines = HeadLines(head);
  if (lines.empty()) return Error{Code::kBadInput, Str(head.path, ":1:1: found no rows, expected user, item, rating")};
  description.delimiter = TRY(ChooseDelimiter(options.delimiter, lines[0], head.path));
  description.header =
      options.header == "yes" || (options.header == "auto" && IsHeader(SplitFields(lines[0], description.delimiter)));
  const std::size_t fields = CountFields(lines, description.delimiter);
  if (fields == 0)
    return Error{Code::kBadInput, Str(head.path, ":1:1: found ", Quoted(lines[0]),
                                      ", expected a user, an item, a number and "
                                      "perhaps a timestamp between ",
                                      Quoted(description.delimiter))};
  description.columns = RatingsColumns();
  if (fields == kMostFields) description.columns.push_back({"timestamp", Column::Kind::kTime});
  description.labels.kind = Labels::Kind::kReal;
  description.dictionaries.resize(2);
  description.joint_ids = options.joint_ids;
  return {};
}

Result<std::unique_ptr<Parser>> Make(const Head& head, const Description& description, const InputOptions&,
                                     base::Files&, bool labelled) {
  if (description.delimiter.empty() || description.dictionaries.size() != 2)
    return Error{Code::kCorrupt, "input description: ratings need a delimiter and dictionaries of users and items"};
  std::optional<std::size_t> fields;
  if (labelled) {
    fields = CountFields(HeadLines(head), description.delimiter);
    if (fields == 0) fields = description.columns.size();
  }
  return std::unique_ptr<Parser>(std::make_unique<RatingsParser>(description, fields));
}

}  // namespace

extern const Format kRatings = {"ratings", "user item rating [timestamp], between tabs, :: or commas", LooksLike,
                                Describe, Make};

}  // namespace freshet::data
