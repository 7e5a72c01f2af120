#include "data/formats/csv_parser.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/option.h"
#include "base/random.h"
#include "data/date.h"
#include "data/formats/lines.h"
#include "data/number.h"

namespace freshet::data {
namespace {

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

class CsvParser final : public Parser {
 public:
  CsvParser(const Description& description, std::vector<CsvField> fields, bool labelled)
      : description_(description),
        fields_(std::move(fields)),
        labelled_(labelled),
        delimiter_(description.delimiter[0]),
        comma_(description.decimal == ','),
        missing_(description.standardise ? kMissing : 0.0f) {
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      has_weight_ |= fields_[i].kind == Column::Kind::kWeight;
      has_time_ |= fields_[i].kind == Column::Kind::kTime;
      categories_ += fields_[i].kind == Column::Kind::kCategory ? 1 : 0;
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

  // A plain number takes the fast way, without looking for the end of the field; null for anything else.
  const char* TakePlain(const char* at, const char* end, double& number) const {
    const char* stop = nullptr;
    if (!comma_) [[likely]]
      stop = ParseDouble(at, end, number);
    else if (delimiter_ != ',')
      stop = ParseDouble<','>(at, end, number);
    return stop != nullptr && AtFieldEnd(stop) ? stop : nullptr;
  }

  // A number, or `missing` when there is none.
  double TakeNumber(const char*& at, const char* end, float missing, Mistake& mistake) const {
    const char* const begin = at;
    double number = 0;
    const char* const stop = TakePlain(at, end, number);
    if (stop != nullptr && std::abs(number) <= std::numeric_limits<float>::max()) [[likely]] {
      at = stop;
      return number;
    }
    const Text field = TakeField(at, end, mistake);
    if (mistake.at != nullptr || IsMissingNumber(field.raw)) return missing;
    if (field.doubled_quotes || !ParseMarked(field.raw, description_.decimal, number))
      mistake = {begin, Str("found ", Quoted(field.raw), ", expected a number", comma_ ? " with a decimal comma" : "",
                            ", as in the first rows; list the column under ", Option("categorical"), " if it is one")};
    else if (!std::isfinite(static_cast<float>(number)))
      mistake = {begin, Str("found ", Quoted(field.raw), ", expected a finite number")};
    return number;
  }

  void TakeDate(const char*& at, const char* end, std::span<float> numbers, Mistake& mistake) const {
    const char* const begin = at;
    const Text field = TakeField(at, end, mistake);
    if (mistake.at != nullptr) return;
    std::fill(numbers.begin(), numbers.end(), missing_);
    if (IsMissingNumber(field.raw) || DateNumbers(field.raw, numbers)) return;
    mistake = {begin, Str("found ", Quoted(field.raw),
                          ", expected a date such as 2021-03-04 or 2021-03-04T12:34:56Z, as in the first rows; list "
                          "the column under ",
                          Option("categorical"), " if it is one")};
  }

  // Reads the row at `at` and returns where the next begins; on a mistake a place outside of quotes in the same row.
  const char* ParseRow(const char* at, const char* end, Rows& rows, Mistake& mistake) const {
    float* numbers = nullptr;
    const std::size_t start = rows.indices.size();
    const auto features = static_cast<std::size_t>(description_.features);
    if (description_.dense) {
      numbers = rows.dense.Room(features);
    } else {
      std::uint32_t* const index = rows.indices.Room(features + categories_);
      numbers = rows.values.Room(features + categories_);
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
      const CsvField& field = fields_[taken];
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
        case Column::Kind::kDate:
          TakeDate(at, end, {numbers + field.feature, 3}, mistake);
          break;
        case Column::Kind::kDateTime:
          TakeDate(at, end, {numbers + field.feature, 4}, mistake);
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
    const char* const stop = TakePlain(at, end, number);
    float label;
    if (stop != nullptr) [[likely]] {
      at = stop;
      label = description_.labels.Map(number);
    } else {
      const Text field = TakeField(at, end, mistake);
      if (mistake.at != nullptr || IsMissing(field.raw)) return kMissing;
      std::string room;
      const std::string_view text = field.Value(room);
      label =
          comma_ && ParseMarked(text, ',', number) ? description_.labels.Map(number) : description_.labels.Map(text);
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
    double time = kMissing;
    const char* const stop = TakePlain(at, end, time);
    if (stop != nullptr) {
      at = stop;
    } else {
      const Text field = TakeField(at, end, mistake);
      Date date;
      if (mistake.at == nullptr && ParseDate(field.raw, date)) return date.seconds;
      if (mistake.at == nullptr) (void)ParseMarked(field.raw, description_.decimal, time);
    }
    if (std::abs(time) < 0x1p63) [[likely]]
      return static_cast<std::int64_t>(time);
    if (mistake.at == nullptr)
      mistake = {begin, Str("found time ", Quoted({begin, static_cast<std::size_t>(at - begin)}),
                            ", expected seconds since 1970, or a date such as 2021-03-04T12:34:56Z")};
    return 0;
  }

  void TakeCategory(const char*& at, const char* end, const CsvField& field, Rows& rows, Mistake& mistake) const {
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
  std::vector<CsvField> fields_;
  const bool labelled_;
  const char delimiter_;
  const bool comma_;     // before the fraction of a number
  const float missing_;  // what a missing number becomes: standardisation knows what to do with NaN
  bool has_weight_ = false, has_time_ = false;
  std::size_t categories_ = 0;
  std::uint64_t four_zeros_ = 0;  // "0,0,0,0,"
};

}  // namespace

bool IsMissing(std::string_view field) {
  static constexpr std::array<std::string_view, 9> kWords = {"", "NA", "nan", "NaN", "?", "null", "NULL", "N/A", "na"};
  return std::find(kWords.begin(), kWords.end(), field) != kWords.end();
}

bool IsMissingNumber(std::string_view field) {
  static constexpr std::array<std::string_view, 14> kWords = {"None", "none", "NONE", "Null", "nil", "NAN", "<NA>",
                                                              "#N/A", "n/a",  "N/a",  "NaT",  "-",   "--",  "."};
  return IsMissing(field) || std::find(kWords.begin(), kWords.end(), field) != kWords.end();
}

bool DateNumbers(std::string_view text, std::span<float> numbers) {
  Date date;
  if (!ParseDate(text, date)) return false;
  const int parts[Column::kMostNumbers] = {date.year, date.month, date.weekday, date.hour};
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(parts[i]);
  return true;
}

std::vector<CsvField> FieldsFor(const std::vector<Column>& columns) {
  std::vector<CsvField> fields;
  std::uint32_t numbers = 0, categories = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const bool category = columns[i].kind == Column::Kind::kCategory;
    fields.push_back({columns[i].kind, category ? categories++ : numbers, i + 1});
    numbers += columns[i].numbers();
  }
  return fields;
}

std::unique_ptr<Parser> MakeCsvParser(const Description& description, std::vector<CsvField> fields, bool labelled) {
  return std::make_unique<CsvParser>(description, std::move(fields), labelled);
}

}  // namespace freshet::data
