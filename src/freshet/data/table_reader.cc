#include "data/table_reader.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/option.h"
#include "base/random.h"
#include "data/others.h"

namespace freshet::data {
namespace {

constexpr std::string_view kTable = "the rows in memory";
constexpr std::size_t kMostClasses = 100'000;

// The labels that stand for classes, as text, or enough of them to tell that they are numbers.
Result<std::vector<std::string>> SeenLabels(const Table& table, Labels::Kind task) {
  if (!table.labels->names.empty()) return table.labels->names;
  constexpr std::size_t kEnough = 128;  // for Labels::Settle to take them for numbers
  std::set<double> seen;
  for (std::uint64_t r = 0; r < table.rows(); ++r) {
    seen.insert(table.labels->numbers.At(r));
    if (task == Labels::Kind::kAuto && seen.size() > kEnough) break;
    if (seen.size() > kMostClasses)
      return Error{Code::kBadInput,
                   Str("more than ", kMostClasses, " different labels; use ", Option("loss"), " squared for numbers")};
  }
  std::vector<std::string> names;
  for (const double label : seen) names.push_back(Str(label));
  return names;
}

}  // namespace

TableReader::TableReader(std::shared_ptr<const Table> table, const Options& options, Description& description)
    : table_(std::move(table)), options_(options), description_(description) {
  const Part& part = options.part;
  first_ = table_->rows() * part.index / part.count;
  last_ = table_->rows() * (part.index + 1) / part.count;
  // Small tables are read in small pieces, so that progress and learning curves have some points to show.
  constexpr std::uint64_t kSmallest = 16 << 10, kLargest = 256 << 10, kPieces = 100;
  const std::uint64_t bytes_of_row = table_->numbers_of_row() * sizeof(float) + 1;
  const std::uint64_t bytes = std::clamp(table_->rows() * bytes_of_row / kPieces, kSmallest, kLargest);
  rows_of_block_ = std::max<std::uint64_t>(1, bytes / bytes_of_row);
  order_.resize((last_ - first_ + rows_of_block_ - 1) / rows_of_block_);
  TableReader::Permute(0);
}

Result<std::unique_ptr<TableReader>> TableReader::Open(std::shared_ptr<const Table> table, const Options& options,
                                                       const InputOptions& input, Description& description) {
  if (table->rows() == 0) return Error{Code::kBadInput, Str(kTable, ": there are none, expected at least one")};
  if (options.labelled && !table->labels)
    return Error{Code::kInvalid, "these rows have no labels, and learning or evaluating needs one for each"};
  std::unique_ptr<TableReader> reader(new TableReader(std::move(table), options, description));
  if (description.format.empty()) {
    TRY(reader->table_->Describe(input, description));
    TRY(reader->SettleLabels(input));
    if (input.others != nullptr) {
      TRY(AgreeOnFormat(*input.others, description.format));
      TRY(AgreeOnDescription(*input.others, description));
    }
  }
  if (input.others != nullptr && description.standardise && description.moments.rows() == 0)
    TRY(reader->AgreeOnShownMoments(*input.others));
  if (!reader->table_->labels) return reader;
  const auto& names = reader->table_->labels->names;
  for (const std::string& name : names)
    reader->label_of_position_.push_back(description.labels.Map(CanonicalLabel(name)));
  return reader;
}

Result<void> TableReader::SettleLabels(const InputOptions& input) {
  Labels& labels = description_.labels;
  labels = {};
  labels.kind = Labels::Kind::kReal;
  if (!table_->labels || description_.format == "ratings") return {};
  labels.kind = input.task;
  labels.positive = input.positive;
  labels.names = input.classes;
  const bool told = labels.kind == Labels::Kind::kReal || !labels.positive.empty();
  std::vector<std::string> seen;
  if (!told) seen = TRY(SeenLabels(*table_, labels.kind));
  if (!told && input.others != nullptr) seen = TRY(AgreeOnLabels(*input.others, seen));
  return labels.Settle(seen).While(Str("reading ", kTable));
}

// Moments that are learned while reading would be each reader's own: those of rows that all show stand for them, as of
// the heads of files (Reader::AgreeOnHeadMoments).
Result<void> TableReader::AgreeOnShownMoments(Others& others) {
  constexpr std::size_t kEnoughBytes = 256 << 10;  // to show
  const auto columns = static_cast<std::size_t>(description_.features);
  const std::uint64_t every = (last_ - first_) * columns * sizeof(float) / kEnoughBytes + 1;
  std::vector<float> shown;
  Rows rows;
  std::vector<NewName> names;
  for (std::uint64_t r = first_; r < last_; r += every) {
    TRY(table_->Read(RowBuilder(description_, r), r, 1, rows, names));
    const float* const row = rows.width > 0 ? rows.dense.data() : rows.values.data();
    shown.insert(shown.end(), row, row + columns);
  }
  return AgreeOnMoments(others, shown, description_.moments);
}

Result<bool> TableReader::Next(Rows& rows) {
  const std::uint64_t mine = next_.fetch_add(1);
  if (mine >= order_.size()) return false;
  rows.Clear();
  rows.sequence = mine - begun_;
  rows.begin = rows.end = {};
  rows.begin.block = mine;
  rows.end.block = mine + 1;
  if (!description_.dictionaries.empty()) return true;  // names are looked for in order: Finish
  std::vector<NewName> none;
  TRY(Fill(order_[mine], rows, none));
  return true;
}

Result<void> TableReader::Finish(Rows& rows) {
  if (description_.dictionaries.empty()) return {};
  std::vector<NewName> names;
  const Position begin = rows.begin, end = rows.end;
  const std::uint64_t sequence = rows.sequence;
  TRY(Fill(order_[begin.block], rows, names));
  if (options_.grow) AddNames(names, description_, rows);
  rows.begin = begin;
  rows.end = end;
  rows.sequence = sequence;
  return {};
}

Result<void> TableReader::Fill(std::uint64_t block, Rows& rows, std::vector<NewName>& names) const {
  const std::uint64_t first = first_ + block * rows_of_block_, last = std::min(first + rows_of_block_, last_);
  const RowBuilder builder(description_, first);
  TRY(table_->Read(builder, first, last - first, rows, names));
  std::uint64_t* const samples = rows.samples.Room(last - first);
  std::iota(samples, samples + (last - first), first);
  rows.samples.SetEnd(samples + (last - first));
  if (table_->labels) TRY(FillLabels(first, rows));
  if (table_->weights) TRY(FillWeights(first, rows));
  return {};
}

Result<void> TableReader::FillLabels(std::uint64_t first, Rows& rows) const {
  const Table::Labels& labels = *table_->labels;
  const auto wrong = [&](std::size_t r, const std::string& found) {
    return Error{Code::kBadInput,
                 Str("row ", first + r, ": label ", found, ", expected ", description_.labels.Expected())};
  };
  labels.numbers.CopyTo(first, rows.labels.span());
  const bool direct = labels.names.empty() && description_.labels.kind == Labels::Kind::kReal;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const float number = rows.labels[r];
    if (!labels.names.empty()) {
      if (!(number >= 0 && number < static_cast<float>(label_of_position_.size())))
        return wrong(r, Str("at position ", number));
      rows.labels[r] = label_of_position_[static_cast<std::size_t>(number)];
      if (!std::isfinite(rows.labels[r])) return wrong(r, Quoted(labels.names[static_cast<std::size_t>(number)]));
    } else if (!direct) {
      rows.labels[r] = description_.labels.Map(labels.numbers.At(first + r));
    }
    if (!std::isfinite(rows.labels[r])) return wrong(r, Str(number));
  }
  return {};
}

Result<void> TableReader::FillWeights(std::uint64_t first, Rows& rows) const {
  rows.weights.Resize(rows.size());
  table_->weights->CopyTo(first, rows.weights.span());
  for (std::size_t r = 0; r < rows.size(); ++r)
    if (!(rows.weights[r] >= 0 && std::isfinite(rows.weights[r])))
      return Error{Code::kBadInput,
                   Str("row ", first + r, ": weight ", rows.weights[r], ", expected a finite number of 0 or more")};
  return {};
}

Result<void> TableReader::Seek(const Position& position) {
  if (position.block > order_.size())
    return Error{Code::kInvalid, Str(kTable, ": going on at block ", position.block, " of ", order_.size(),
                                     "; they are not those that the checkpoint was made from")};
  next_ = begun_ = position.block;
  return {};
}

void TableReader::Permute(std::uint64_t seed) {
  std::iota(order_.begin(), order_.end(), 0);
  if (seed == 0) return;
  base::Random random(seed, "order of blocks in memory");
  for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random.Below(i)]);
}

std::optional<double> TableReader::Fraction(const Position& position) const {
  return order_.empty() ? 1.0 : static_cast<double>(position.block) / static_cast<double>(order_.size());
}

Result<void> TableReader::Glimpse(const std::function<void(const Rows& rows)>& see) const {
  constexpr std::uint64_t kPlaces = 64;
  const std::uint64_t blocks = order_.size(), places = std::min(blocks, kPlaces);
  Rows rows;
  std::vector<NewName> names;
  for (std::uint64_t place = 0; place < places; ++place) {
    TRY(Fill(place * blocks / places, rows, names));
    see(rows);
  }
  return {};
}

}  // namespace freshet::data
