// Rows from columns by name: what formats/csv_parser.cc and ratings.cc do with a line of text, for cells that are values
// already.

#include <algorithm>

#include "base/random.h"
#include "data/date.h"
#include "data/formats/csv_parser.h"
#include "data/row_cells.h"

namespace freshet::data {

// Fills the rows of one call. Cells stand in the order of the description's columns; null where one was left out.
class RowBuilder::Filler {
 public:
  Filler(const RowBuilder& builder, const std::vector<const Cells*>& cells, bool labelled, Rows& rows,
         std::vector<NewName>& names)
      : description_(builder.description_),
        first_(builder.first_),
        fields_(builder.fields_),
        cells_(cells),
        labelled_(labelled),
        ratings_(description_.format == "ratings"),
        missing_(description_.standardise ? kNoValue : 0.0f),
        rows_(rows),
        names_(names) {}

  Result<void> Fill(std::size_t count) {
    for (std::size_t r = 0; r < count; ++r) {
      StartRow();
      for (std::size_t f = 0; f < fields_.size(); ++f) {
        if (cells_[f] == nullptr || Take(fields_[f], cells_[f]->values, r)) continue;
        return Error{Code::kBadInput, Str("column ", Quoted(cells_[f]->name), ", row ", first_ + r, ": found ",
                                          CellText(cells_[f]->values, r), ", expected ", expected_)};
      }
      if (labelled_ && std::isnan(rows_.labels[r]))
        return Error{Code::kBadInput,
                     Str("row ", first_ + r, ": found no label, expected ", description_.labels.Expected())};
      if (!description_.dense) rows_.offsets.Append(static_cast<std::uint32_t>(rows_.indices.size()));
    }
    return {};
  }

 private:
  // All numbers of the row are missing until their cells say otherwise.
  void StartRow() {
    const auto features = static_cast<std::size_t>(description_.features);
    Buffer<float>& numbers = description_.dense ? rows_.dense : rows_.values;
    start_ = numbers.size();
    numbers.Resize(start_ + features);
    std::fill_n(numbers.data() + start_, features, missing_);
    for (std::uint32_t j = 0; !description_.dense && j < features; ++j) rows_.indices.Append(j);
  }

  // False, with what was expected, when the cell is wrong.
  bool Take(const CsvField& field, const Values& values, std::size_t row) {
    switch (field.kind) {
      case Column::Kind::kNumber:
        return TakeNumber(field, values, row);
      case Column::Kind::kCategory:
        return ratings_ ? TakeName(field, values, row) : TakeCategory(field, values, row);
      case Column::Kind::kLabel:
        return TakeLabel(values, row);
      case Column::Kind::kWeight:
        return TakeWeight(values, row);
      case Column::Kind::kTime:
        return TakeTime(values, row);
      case Column::Kind::kDate:
        return TakeDate(field, 3, values, row);
      case Column::Kind::kDateTime:
        return TakeDate(field, 4, values, row);
      case Column::Kind::kIgnored:
        break;
    }
    return true;
  }

  bool Wrong(std::string expected) {
    expected_ = std::move(expected);
    return false;
  }

  bool TakeNumber(const CsvField& field, const Values& values, std::size_t row) {
    double number = 0;
    const Found found = NumberAt(values, row, description_.decimal, number);
    if (found == Found::kMissing) return true;
    if (found == Found::kWrong) return Wrong("a number");
    const auto value = static_cast<float>(number);
    (description_.dense ? rows_.dense : rows_.values)[start_ + field.feature] = value;
    return std::isfinite(value) || Wrong("a finite number");
  }

  bool TakeDate(const CsvField& field, std::size_t count, const Values& values, std::size_t row) {
    NumberText room;
    std::string_view text;
    const Found found = TextAt(values, row, room, text);
    if (found == Found::kMissing || IsMissingNumber(text)) return true;
    float* const numbers = (description_.dense ? rows_.dense : rows_.values).data() + start_ + field.feature;
    return DateNumbers(text, {numbers, count}) || Wrong("a date such as '2021-03-04' or '2021-03-04T12:34:56Z'");
  }

  bool TakeCategory(const CsvField& field, const Values& values, std::size_t row) {
    NumberText room;
    std::string_view text;
    const Found found = TextAt(values, row, room, text);
    if (found == Found::kWrong) return Wrong("text without NUL bytes");
    if (found == Found::kMissing || IsMissing(text)) return true;
    if (description_.bits > 0) {
      AppendEntry(static_cast<std::uint32_t>(base::Hash64(text, field.seed)) & ((1u << description_.bits) - 1));
    } else {
      AppendName(field.feature, text, description_.dictionaries[0].Find(CategoryKey(field.feature, text, rows_.text)));
    }
    return true;
  }

  bool TakeName(const CsvField& field, const Values& values, std::size_t row) {
    NumberText room;
    std::string_view text;
    if (TextAt(values, row, room, text) != Found::kValue || text.empty()) return Wrong("a name");
    AppendName(field.feature, text, description_.dictionaries[field.feature].Find(text));
    return true;
  }

  void AppendName(std::uint32_t space, std::string_view name, std::uint32_t number) {
    if (number == kUnseen)
      names_.push_back({static_cast<std::uint32_t>(rows_.indices.size()), space, std::string(name)});
    AppendEntry(FeatureOf(description_, space, number));
  }

  void AppendEntry(std::uint32_t index) {
    rows_.indices.Append(index);
    rows_.values.Append(1.0f);
  }

  bool TakeLabel(const Values& values, std::size_t row) {
    NumberText room;
    std::string_view text;
    const Found found = TextAt(values, row, room, text);
    if (found == Found::kMissing || (!ratings_ && IsMissing(text))) return true;
    const float label = MapLabel(values, row, description_);
    if (std::isfinite(label)) rows_.labels[row] = label;
    return std::isfinite(label) || !labelled_ || Wrong(description_.labels.Expected());
  }

  bool TakeWeight(const Values& values, std::size_t row) {
    double weight = 0;
    const auto fits = [](float value) { return std::isfinite(value) && value >= 0; };
    if (NumberAt(values, row, description_.decimal, weight) != Found::kValue || !fits(static_cast<float>(weight)))
      return Wrong("a weight of 0 or more");
    rows_.weights.Append(static_cast<float>(weight));
    return true;
  }

  bool TakeTime(const Values& values, std::size_t row) {
    if (const auto* const whole = std::get_if<std::span<const std::int64_t>>(&values)) {
      rows_.times.Append((*whole)[row]);
      return true;
    }
    NumberText room;
    std::string_view text;
    Date date;
    if (TextAt(values, row, room, text) == Found::kValue && ParseDate(text, date)) {
      rows_.times.Append(date.seconds);
      return true;
    }
    double time = 0;
    if (NumberAt(values, row, description_.decimal, time) != Found::kValue || !(std::abs(time) < 0x1p63))
      return Wrong("seconds since 1970, or a date such as '2021-03-04T12:34:56Z'");
    rows_.times.Append(static_cast<std::int64_t>(time));
    return true;
  }

  const Description& description_;
  const std::uint64_t first_;
  const std::vector<CsvField>& fields_;
  const std::vector<const Cells*>& cells_;
  const bool labelled_, ratings_;
  const float missing_;  // what a missing number becomes: standardisation knows what to do with NaN
  Rows& rows_;
  std::vector<NewName>& names_;
  std::size_t start_ = 0;  // of the row's numbers
  std::string expected_;
};

// The cells of each of the description's columns. When a name stands twice, the first goes with the first.
Result<std::vector<const Cells*>> RowBuilder::Match(std::span<const Cells> columns) const {
  std::vector<const Cells*> cells(fields_.size());
  const auto name_of = [&](std::uint32_t column) -> std::string_view { return description_.columns[column].name; };
  for (const Cells& column : columns) {
    auto at = std::lower_bound(by_name_.begin(), by_name_.end(), column.name,
                               [&](std::uint32_t number, std::string_view name) { return name_of(number) < name; });
    while (at != by_name_.end() && name_of(*at) == column.name && cells[*at] != nullptr) ++at;
    if (at == by_name_.end() || name_of(*at) != column.name)
      return Error{Code::kBadInput, Str("column ", Quoted(column.name), ": the model has no such column")};
    cells[*at] = &column;
  }
  for (std::size_t f = 0; f < fields_.size(); ++f)
    if (description_.format == "ratings" && fields_[f].kind == Column::Kind::kCategory && cells[f] == nullptr)
      return Error{Code::kBadInput, Str("column ", Quoted(name_of(static_cast<std::uint32_t>(f))),
                                        ": is missing, expected one, since every rating has it")};
  return cells;
}

Result<void> RowBuilder::FromColumns(std::size_t count, std::span<const Cells> columns, bool labelled, Rows& rows,
                                     std::vector<NewName>& names) const {
  CHECK(takes_columns());
  for (const Cells& column : columns) CHECK(SizeOf(column.values) == count);
  const std::vector<const Cells*> cells = TRY(Match(columns));
  names.clear();
  StartRows(count, description_.dense ? static_cast<std::size_t>(description_.features) : 0, rows);
  return Filler(*this, cells, labelled, rows, names).Fill(count);
}

}  // namespace freshet::data
