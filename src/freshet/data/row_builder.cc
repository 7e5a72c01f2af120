#include "data/row_builder.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "data/row_cells.h"

namespace freshet::data {
namespace {

// As the LIBSVM parser has it: without hashing a model has a weight for every index up to the largest.
constexpr std::int64_t kMostFeatures = 1 << 28;

Error Bad(std::string text) { return {Code::kBadInput, std::move(text)}; }

// Which feature the number is that a user of the format writes.
class Indexing {
 public:
  explicit Indexing(const Description& description)
      : base_(description.index_base),
        named_(description.format == "vw"),
        mask_(description.bits > 0 ? (1u << description.bits) - 1 : 0) {}

  // The features of one row; false, with what is wrong, for one that the LIBSVM parser would refuse.
  bool Read(std::span<const std::int64_t> indices, std::uint32_t* out, std::string& wrong) const {
    std::int64_t last = base_ - 1;
    for (const std::int64_t index : indices) {
      if (!named_ && index <= last) [[unlikely]] {
        wrong = Str("index ", index,
                    last < base_ ? Str(", expected ", base_, " or more")
                                 : Str(" after index ", last, ", expected ascending order"));
        return false;
      }
      if (!named_ && mask_ == 0 && index - base_ >= kMostFeatures) [[unlikely]] {
        wrong = Str("index ", index, ", expected at most ", kMostFeatures - 1 + base_);
        return false;
      }
      *out++ = FeatureOf(index);
      last = index;
    }
    return true;
  }

 private:
  std::uint32_t FeatureOf(std::int64_t index) const {
    if (named_) return static_cast<std::uint32_t>(base::Hash64(NumberText(index).view(), unnamed_)) & mask_;
    if (mask_ > 0) return static_cast<std::uint32_t>(base::Hash64(static_cast<std::uint64_t>(index))) & mask_;
    return static_cast<std::uint32_t>(index - base_);
  }

  const std::int64_t base_;
  const bool named_;  // VW: every feature has a name, and a number is one
  const std::uint32_t mask_;
  const std::uint64_t unnamed_ = base::Hash64(std::string_view());  // the namespace without a name
};

}  // namespace

RowBuilder::RowBuilder(const Description& description, std::uint64_t first) : description_(description), first_(first) {
  const bool table = description.format == "csv", ratings = description.format == "ratings";
  form_ = description.dense ? Form::kNumbers : (table || ratings ? Form::kColumns : Form::kIndices);
  if (!table && !ratings) return;
  fields_ = FieldsFor(description.columns);
  for (std::uint32_t i = 0; i < fields_.size(); ++i) by_name_.push_back(i);
  std::stable_sort(by_name_.begin(), by_name_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return description.columns[a].name < description.columns[b].name;
  });
}

Result<void> RowBuilder::FromNumbers(std::span<const float> values, Rows& rows) const {
  CHECK(form_ == Form::kNumbers);
  const auto width = static_cast<std::size_t>(description_.features);
  CHECK(width > 0 && values.size() % width == 0);
  StartRows(values.size() / width, width, rows);
  rows.dense.Resize(values.size());
  const auto scale = static_cast<float>(description_.scale);
  bool finite = true;
  for (std::size_t i = 0; i < values.size(); ++i) {
    finite &= std::abs(values[i]) <= std::numeric_limits<float>::max();
    rows.dense[i] = values[i] * scale;
  }
  if (finite) [[likely]]
    return {};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    if (!std::isnan(values[i]) || !allows_missing())
      return Bad(Str("row ", first_ + i / width, ", feature ", i % width, ": found ", values[i],
                     ", expected a finite number"));
    if (!description_.standardise) rows.dense[i] = 0;
  }
  return {};
}

Result<void> RowBuilder::FromIndices(std::span<const std::int64_t> starts, std::span<const std::int64_t> indices,
                                     std::span<const float> values, Rows& rows) const {
  CHECK(form_ == Form::kIndices);
  const std::size_t entries = indices.size();
  if (values.size() != entries) return Bad(Str(entries, " indices, but ", values.size(), " values"));
  if (entries >= kUnseen) return Bad(Str(entries, " indices, expected fewer than ", kUnseen));
  if (starts.empty() || starts.front() != 0)
    return Bad(starts.empty() ? "found no start of a row, expected 0"
                              : Str("the first row starts at ", starts.front(), ", expected 0"));
  StartRows(starts.size() - 1, 0, rows);
  rows.indices.Resize(entries);
  rows.values.Append(values);
  const Indexing indexing(description_);
  std::string wrong;
  for (std::size_t r = 0; r + 1 < starts.size(); ++r) {
    const std::int64_t begin = starts[r], end = starts[r + 1];
    if (end < begin || end > static_cast<std::int64_t>(entries))
      return Bad(Str("row ", first_ + r, " starts at ", begin, " and ends at ", end, ", expected an end from ", begin,
                     " to ", entries));
    const auto at = static_cast<std::size_t>(begin), count = static_cast<std::size_t>(end - begin);
    if (!indexing.Read(indices.subspan(at, count), rows.indices.data() + at, wrong))
      return Bad(Str("row ", first_ + r, ": ", wrong));
    rows.offsets.Append(static_cast<std::uint32_t>(end));
  }
  if (rows.offsets.back() != entries)
    return Bad(Str("the last row ends at ", rows.offsets.back(), ", expected ", entries, ", the number of indices"));
  for (std::size_t i = 0; i < entries; ++i)
    if (!std::isfinite(values[i])) return Bad(Str("value ", i, ": found ", values[i], ", expected a finite number"));
  return {};
}

Result<float> RowBuilder::Label(double number) const {
  const float label = description_.labels.Map(number);
  if (std::isfinite(label)) return label;
  return Bad(Str("label ", number, ", expected ", description_.labels.Expected()));
}

Result<float> RowBuilder::Label(std::string_view text) const {
  const float label = MapLabel(text, description_);
  if (std::isfinite(label)) return label;
  return Bad(Str("label ", Quoted(text), ", expected ", description_.labels.Expected()));
}

Result<void> RowBuilder::SetLabels(const Values& labels, Rows& rows, std::vector<NewLabel>* fresh) const {
  CHECK(SizeOf(labels) == rows.size());
  const bool open = fresh != nullptr && description_.labels.kind == Labels::Kind::kClasses;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    rows.labels[r] = MapLabel(labels, r, description_);
    if (std::isfinite(rows.labels[r])) [[likely]]
      continue;
    if (auto name = open ? NewLabelIn(labels, r, description_) : std::nullopt)
      fresh->push_back({r, std::move(*name)});
    else
      return Bad(
          Str("row ", first_ + r, ": label ", CellText(labels, r), ", expected ", description_.labels.Expected()));
  }
  return {};
}

void AddNames(std::span<const NewName> names, Description& description, Rows& rows) {
  const bool ratings = description.format == "ratings";
  for (const NewName& name : names) {
    const std::uint32_t number = ratings
                                     ? description.dictionaries[name.space].Add(name.name)
                                     : description.dictionaries[0].Add(CategoryKey(name.space, name.name, rows.text));
    rows.indices[name.entry] = FeatureOf(description, name.space, number);
  }
}

}  // namespace freshet::data
