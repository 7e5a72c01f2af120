// Tables of columns in memory: what formats/csv.cc does with text, for values that have types.

#include <algorithm>
#include <limits>
#include <map>

#include "base/option.h"
#include "data/formats/ratings_columns.h"
#include "data/table.h"

namespace freshet::data {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

bool IsText(const ColumnPiece& piece) { return piece.dictionary != nullptr || piece.bytes != nullptr; }
bool IsWhole(Numbers::Type type) { return type != Numbers::Type::kF32 && type != Numbers::Type::kF64; }

bool IsThere(const ColumnPiece& piece, std::uint64_t row) {
  if (piece.valid == nullptr) return true;
  const std::uint64_t bit = piece.first_bit + row;
  return ((piece.valid[bit / 8] >> (bit % 8)) & 1) != 0;
}

std::string_view TextIn(const ColumnPiece& piece, std::uint64_t row) {
  if (!IsThere(piece, row)) return {};
  if (piece.dictionary != nullptr) return TextIn(*piece.dictionary, static_cast<std::uint64_t>(piece.numbers.At(row)));
  const auto begin = static_cast<std::uint64_t>(piece.numbers.At(row));
  return {piece.bytes + begin, static_cast<std::uint64_t>(piece.numbers.At(row + 1)) - begin};
}

double NumberIn(const ColumnPiece& piece, std::uint64_t row) {
  return IsThere(piece, row) ? piece.numbers.At(row) : kNoNumber;
}

std::uint64_t RowsOf(const TableColumn& column) {
  std::uint64_t rows = 0;
  for (const ColumnPiece& piece : column.pieces) rows += piece.rows;
  return rows;
}

bool IsText(const TableColumn& column) {
  return std::any_of(column.pieces.begin(), column.pieces.end(),
                     [](const ColumnPiece& piece) { return IsText(piece); });
}

bool IsWhole(const TableColumn& column) {
  return std::all_of(column.pieces.begin(), column.pieces.end(), [](const ColumnPiece& piece) {
    return !IsText(piece) && IsWhole(piece.numbers.type) && piece.valid == nullptr;
  });
}

// Calls with each piece that has some of the rows, and which of its own those are.
template <class F>
void ForPieces(const TableColumn& column, std::uint64_t first, std::uint64_t count, F call) {
  for (const ColumnPiece& piece : column.pieces) {
    const std::uint64_t here = first < piece.rows ? std::min(count, piece.rows - first) : 0;
    if (here > 0) call(piece, first, here);
    first = here > 0 ? 0 : first - piece.rows;
    count -= here;
    if (count == 0) return;
  }
}

// Some rows of a column as a row builder takes them. Of numbers they lie here, of texts where they are.
struct Taken {
  std::vector<double> numbers;
  std::vector<std::int64_t> whole;
  std::vector<std::string_view> texts;

  Values Take(const TableColumn& column, std::uint64_t first, std::size_t count) {
    if (IsText(column)) {
      texts.clear();
      ForPieces(column, first, count, [&](const ColumnPiece& piece, std::uint64_t at, std::uint64_t rows) {
        for (std::uint64_t r = at; r < at + rows; ++r) texts.push_back(TextIn(piece, r));
      });
      return std::span<const std::string_view>(texts);
    }
    if (IsWhole(column)) {
      whole.resize(count);
      std::size_t to = 0;
      ForPieces(column, first, count, [&](const ColumnPiece& piece, std::uint64_t at, std::uint64_t rows) {
        piece.numbers.CopyTo(at, std::span(whole).subspan(to, rows));
        to += rows;
      });
      return std::span<const std::int64_t>(whole);
    }
    numbers.clear();
    ForPieces(column, first, count, [&](const ColumnPiece& piece, std::uint64_t at, std::uint64_t rows) {
      for (std::uint64_t r = at; r < at + rows; ++r) numbers.push_back(NumberIn(piece, r));
    });
    return std::span<const double>(numbers);
  }
};

std::size_t GuessLabel(const std::vector<TableColumn>& columns) {
  for (const std::string_view name : {"label", "target", "class", "y", "Label", "Target", "Class"})
    for (std::size_t i = 0; i < columns.size(); ++i)
      if (columns[i].name == name) return i;
  return columns.size() - 1;
}

std::vector<std::string> NamesOf(const std::vector<TableColumn>& columns) {
  std::vector<std::string> names;
  for (const TableColumn& column : columns) names.push_back(column.name);
  return names;
}

Error NoColumn(std::string_view option, const std::string& name, const std::vector<TableColumn>& columns) {
  const auto names = NamesOf(columns);
  const std::string nearest = Nearest(name, names);
  return {Code::kInvalid,
          Str(Option(option), " ", Quoted(name), ": no such column; ",
              nearest.empty() ? Str("there are ", Join(names, ", ")) : Str("did you mean ", Quoted(nearest), "?"))};
}

class Columns final : public Table {
 public:
  Columns(std::uint64_t rows, std::vector<TableColumn> columns) : Table(rows), columns_(std::move(columns)) {}

  std::uint64_t numbers_of_row() const override { return columns_.size(); }

  // Labels lie here, as numbers one after another: of classes with names their places among these.
  Result<void> TakeLabels(const std::string& wanted) {
    const auto at = std::find_if(columns_.begin(), columns_.end(), [&](const auto& c) { return c.name == wanted; });
    if (at == columns_.end() && !wanted.empty()) return NoColumn("label", wanted, columns_);
    label_at_ = wanted.empty() ? GuessLabel(columns_) : static_cast<std::size_t>(at - columns_.begin());
    const TableColumn column = std::move(columns_[label_at_]);
    columns_.erase(columns_.begin() + static_cast<std::ptrdiff_t>(label_at_));
    label_name_ = column.name;
    std::map<std::string_view, std::size_t> places;
    std::vector<std::string> names;
    label_numbers_.reserve(rows());
    ForPieces(column, 0, rows(), [&](const ColumnPiece& piece, std::uint64_t first, std::uint64_t count) {
      for (std::uint64_t r = first; r < first + count; ++r) {
        if (!IsText(piece)) {
          label_numbers_.push_back(NumberIn(piece, r));
          continue;
        }
        const std::string_view text = TextIn(piece, r);
        const auto [place, added] = places.try_emplace(text, names.size());
        if (added) names.emplace_back(text);
        label_numbers_.push_back(static_cast<double>(place->second));
      }
    });
    labels = Labels{{reinterpret_cast<const std::byte*>(label_numbers_.data()), Numbers::Type::kF64, sizeof(double)},
                    std::move(names)};
    return {};
  }

  Result<void> Describe(const InputOptions& options, Description& description) const override {
    TRY(CheckBits(options.bits));
    if (options.format == "ratings") return DescribeRatings(options, description);
    description.format = "csv";
    description.delimiter = ",";
    description.header = true;
    for (const TableColumn& column : columns_)
      description.columns.push_back({column.name, IsText(column) ? Column::Kind::kCategory : Column::Kind::kNumber});
    TRY(TakeUsersWord(options, description.columns));
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (description.columns[i].kind == Column::Kind::kNumber && IsText(columns_[i]))
        return Error{Code::kInvalid, Str(Option("numeric"), " ", Quoted(columns_[i].name), ": its values are texts")};
    const auto count = [&](Column::Kind kind) {
      return std::count_if(description.columns.begin(), description.columns.end(),
                           [&](const Column& column) { return column.kind == kind; });
    };
    description.features = static_cast<std::uint64_t>(count(Column::Kind::kNumber));
    const bool categories = count(Column::Kind::kCategory) > 0;
    if (labels) {
      const std::size_t at = std::min(label_at_, description.columns.size());
      description.columns.insert(description.columns.begin() + static_cast<std::ptrdiff_t>(at),
                                 {label_name_, Column::Kind::kLabel});
    }
    if (!categories && description.features == 0)
      return Error{Code::kBadInput, "found no column to learn from, expected one beside the label"};
    description.bits = options.bits;
    if (options.bits > 0 && description.features > (1ull << options.bits))
      return Error{Code::kInvalid, Str(Option("bits"), " ", options.bits, ": ", description.features,
                                       " numeric columns do not fit in")};
    description.dense = !categories;
    description.standardise = options.standardise && description.features > 0;
    if (description.standardise) description.moments = Moments(description.features);
    if (categories && options.bits == 0) description.dictionaries.resize(1);
    return {};
  }

  Result<void> Read(const RowBuilder& builder, std::uint64_t first, std::size_t count, Rows& rows,
                    std::vector<NewName>& names) const override {
    const Description& description = builder.description();
    if (!builder.takes_columns())
      return Error{Code::kInvalid, Str("the model's rows are numbers without names (format ", description.format,
                                       "), and these are columns by name; give an array")};
    thread_local std::vector<Taken> taken;
    taken.resize(std::max(taken.size(), columns_.size()));
    std::vector<Cells> cells;
    const bool ratings = description.format == "ratings";
    std::size_t category = 0;
    for (const Column& wanted : description.columns) {
      const TableColumn* column = nullptr;
      if (ratings && wanted.kind == Column::Kind::kCategory && category < columns_.size())
        column = &columns_[category++];
      if (!ratings) column = Find(wanted.name);
      const bool needed = wanted.kind == Column::Kind::kNumber || wanted.kind == Column::Kind::kCategory;
      if (column == nullptr && needed)
        return Error{Code::kBadInput, Str("found no column ", Quoted(wanted.name),
                                          ", expected one, since the model was trained with it; there are ",
                                          Join(NamesOf(columns_), ", "))};
      if (column == nullptr || wanted.kind == Column::Kind::kLabel || wanted.kind == Column::Kind::kIgnored) continue;
      cells.push_back({wanted.name, taken[cells.size()].Take(*column, first, count)});
    }
    return builder.FromColumns(count, cells, false, rows, names);
  }

 private:
  const TableColumn* Find(std::string_view name) const {
    const auto at = std::find_if(columns_.begin(), columns_.end(), [&](const auto& c) { return c.name == name; });
    return at == columns_.end() ? nullptr : &*at;
  }

  Result<void> DescribeRatings(const InputOptions& options, Description& description) const {
    if (columns_.size() < 2)
      return Error{Code::kInvalid,
                   Str("ratings of ", columns_.size(), " columns beside the label, expected a user and an item")};
    description.format = "ratings";
    description.delimiter = ",";
    description.header = true;
    description.columns = RatingsColumns();
    description.dictionaries.resize(2);
    description.joint_ids = options.joint_ids;
    return {};
  }

  Result<void> TakeUsersWord(const InputOptions& options, std::vector<Column>& columns) const {
    const auto set = [&](const std::string& name, std::string_view option, Column::Kind kind) -> Result<void> {
      const auto at = std::find_if(columns.begin(), columns.end(), [&](const Column& c) { return c.name == name; });
      if (at == columns.end()) return NoColumn(option, name, columns_);
      at->kind = kind;
      return {};
    };
    for (const std::string& name : options.numeric) TRY(set(name, "numeric", Column::Kind::kNumber));
    for (const std::string& name : options.categorical) TRY(set(name, "categorical", Column::Kind::kCategory));
    for (const std::string& name : options.ignore) TRY(set(name, "ignore", Column::Kind::kIgnored));
    if (!options.weight_column.empty()) TRY(set(options.weight_column, "weight-column", Column::Kind::kWeight));
    if (!options.time_column.empty()) TRY(set(options.time_column, "time-column", Column::Kind::kTime));
    return {};
  }

  std::vector<TableColumn> columns_;  // without the label's
  std::string label_name_ = "label";
  std::size_t label_at_ = std::numeric_limits<std::size_t>::max();  // where it stood among them; beyond: at the end
  std::vector<double> label_numbers_;
};

}  // namespace

Result<std::unique_ptr<Table>> ColumnTable(std::vector<TableColumn> columns, const std::string& label) {
  if (columns.empty()) return Error{Code::kInvalid, "a table without columns"};
  const std::uint64_t rows = RowsOf(columns[0]);
  for (const TableColumn& column : columns)
    if (RowsOf(column) != rows)
      return Error{Code::kInvalid, Str("column ", Quoted(column.name), " has ", RowsOf(column), " rows, expected ",
                                       rows, ", as many as ", Quoted(columns[0].name))};
  auto table = std::make_unique<Columns>(rows, std::move(columns));
  if (label != "none") TRY(table->TakeLabels(label));
  return std::unique_ptr<Table>(std::move(table));
}

}  // namespace freshet::data
