#include "data/table.h"

#include <numeric>

#include "base/option.h"

namespace freshet::data {
namespace {

template <class T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Calls with a value of the numbers' type.
template <class F>
void WithType(Numbers::Type type, F call) {
  switch (type) {
    case Numbers::Type::kF32:
      return call(float());
    case Numbers::Type::kF64:
      return call(double());
    case Numbers::Type::kI8:
      return call(std::int8_t());
    case Numbers::Type::kU8:
      return call(std::uint8_t());
    case Numbers::Type::kI16:
      return call(std::int16_t());
    case Numbers::Type::kU16:
      return call(std::uint16_t());
    case Numbers::Type::kI32:
      return call(std::int32_t());
    case Numbers::Type::kU32:
      return call(std::uint32_t());
    case Numbers::Type::kI64:
      return call(std::int64_t());
    case Numbers::Type::kU64:
      return call(std::uint64_t());
  }
}

template <class T>
void Copy(const Numbers& numbers, std::uint64_t first, std::span<T> out) {
  WithType(numbers.type, [&](auto zero) {
    using From = decltype(zero);
    const std::byte* at = numbers.data + static_cast<std::ptrdiff_t>(first) * numbers.stride;
    if (numbers.stride == sizeof(From)) {  // one after another
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<T>(Load<From>(at + i * sizeof(From)));
      return;
    }
    for (std::size_t i = 0; i < out.size(); ++i, at += numbers.stride) out[i] = static_cast<T>(Load<From>(at));
  });
}

std::uint64_t Product(const std::vector<std::uint64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
}

Error Unlike(const Table& table, const RowBuilder& builder) {
  return {Code::kInvalid,
          Str("these rows have ", table.numbers_of_row(), " numbers each, and the model's ",
              builder.form() == RowBuilder::Form::kColumns
                  ? Str("are columns by name (format ", builder.description().format, "), some of them text")
                  : Str(builder.description().features))};
}

Result<void> CheckOptions(const InputOptions& options) {
  for (const auto& [name, list] :
       {std::pair{"numeric", &options.numeric}, {"categorical", &options.categorical}, {"ignore", &options.ignore}})
    if (!list->empty())
      return Error{Code::kInvalid, Str(Option(name),
                                       ": an array of numbers has no columns to choose from; give columns "
                                       "(a data frame)")};
  return CheckBits(options.bits);
}

class Dense final : public Table {
 public:
  Dense(std::uint64_t rows, std::vector<std::uint64_t> shape, const Numbers& numbers, std::ptrdiff_t row_stride,
        std::vector<std::string> names)
      : Table(rows),
        shape_(std::move(shape)),
        width_(Product(shape_)),
        numbers_(numbers),
        row_stride_(row_stride),
        whole_(numbers.type == Numbers::Type::kF32 && numbers.stride == sizeof(float) &&
               row_stride == static_cast<std::ptrdiff_t>(width_ * sizeof(float))),
        names_(std::move(names)) {}

  std::uint64_t numbers_of_row() const override { return width_; }

  Result<void> Describe(const InputOptions& options, Description& description) const override {
    TRY(CheckOptions(options));
    description.dense = true;
    description.features = width_;
    if (shape_.size() > 1) {
      description.format = "idx";
      description.shape = shape_;
      while (description.shape.size() < 3) description.shape.insert(description.shape.begin(), 1);
      if (numbers_.type == Numbers::Type::kU8) description.scale = 1.0 / 255;
      return {};
    }
    description.format = "csv";
    description.delimiter = ",";
    description.header = !names_.empty();
    for (std::uint64_t i = 0; i < width_; ++i)
      description.columns.push_back({names_.empty() ? Str("x", i + 1) : names_[i], Column::Kind::kNumber});
    if (labels) description.columns.push_back({"label", Column::Kind::kLabel});
    description.standardise = options.standardise;
    if (description.standardise) description.moments = Moments(width_);
    return {};
  }

  Result<void> Read(const RowBuilder& builder, std::uint64_t first, std::size_t count, Rows& rows,
                    std::vector<NewName>&) const override {
    const bool sparse = builder.form() == RowBuilder::Form::kIndices;
    if (builder.form() == RowBuilder::Form::kColumns || (!sparse && builder.description().features != width_))
      return Unlike(*this, builder);
    if (whole_ && !sparse) {
      const auto* const at = reinterpret_cast<const float*>(numbers_.data) + first * width_;
      return builder.FromNumbers({at, count * width_}, rows);
    }
    thread_local std::vector<float> values;
    values.resize(count * width_);
    for (std::size_t r = 0; r < count; ++r) CopyRow(first + r, std::span(values).subspan(r * width_, width_));
    return sparse ? ReadEntries(builder, values, rows) : builder.FromNumbers(values, rows);
  }

 private:
  void CopyRow(std::uint64_t row, std::span<float> out) const {
    Numbers numbers = numbers_;
    numbers.data += static_cast<std::ptrdiff_t>(row) * row_stride_;
    numbers.CopyTo(0, out);
  }

  // For a model of sparse rows: all that are not zero.
  Result<void> ReadEntries(const RowBuilder& builder, std::span<const float> values, Rows& rows) const {
    std::vector<std::int64_t> starts = {0}, indices;
    std::vector<float> entries;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] != 0) {
        indices.push_back(static_cast<std::int64_t>(i % width_) + builder.description().index_base);
        entries.push_back(values[i]);
      }
      if ((i + 1) % width_ == 0) starts.push_back(static_cast<std::int64_t>(indices.size()));
    }
    return builder.FromIndices(starts, indices, entries, rows);
  }

  const std::vector<std::uint64_t> shape_;
  const std::uint64_t width_;
  const Numbers numbers_;
  const std::ptrdiff_t row_stride_;
  const bool whole_;  // can be taken as it is
  const std::vector<std::string> names_;
};

class Sparse final : public Table {
 public:
  Sparse(std::uint64_t rows, std::uint64_t columns, const Numbers& starts, const Numbers& indices,
         const Numbers& values)
      : Table(rows), columns_(columns), starts_(starts), indices_(indices), values_(values) {}

  std::uint64_t numbers_of_row() const override {
    return rows() == 0 ? 1 : static_cast<std::uint64_t>(starts_.At(rows())) / rows() + 1;
  }

  Result<void> Describe(const InputOptions& options, Description& description) const override {
    TRY(CheckOptions(options));
    description.format = "libsvm";
    description.index_base = std::max(options.index_base, 0);
    description.bits = options.bits;
    return {};
  }

  Result<void> Read(const RowBuilder& builder, std::uint64_t first, std::size_t count, Rows& rows,
                    std::vector<NewName>&) const override {
    thread_local std::vector<std::int64_t> starts, indices;
    thread_local std::vector<float> values;
    starts.resize(count + 1);
    starts_.CopyTo(first, starts);
    const std::int64_t begin = starts[0], entries = starts[count] - begin;
    if (begin < 0 || entries < 0)
      return Error{Code::kBadInput, Str("rows from ", first, " on end before they begin; the matrix is damaged")};
    indices.resize(static_cast<std::size_t>(entries));
    values.resize(static_cast<std::size_t>(entries));
    indices_.CopyTo(static_cast<std::uint64_t>(begin), indices);
    values_.CopyTo(static_cast<std::uint64_t>(begin), values);
    for (std::int64_t& start : starts) start -= begin;
    if (builder.form() == RowBuilder::Form::kNumbers) return ReadNumbers(builder, starts, indices, values, rows);
    if (builder.form() == RowBuilder::Form::kColumns) return Unlike(*this, builder);
    for (std::int64_t& index : indices) index += builder.description().index_base;
    return builder.FromIndices(starts, indices, values, rows);
  }

 private:
  // For a model of dense rows: what has no entry is zero.
  Result<void> ReadNumbers(const RowBuilder& builder, std::span<const std::int64_t> starts,
                           std::span<const std::int64_t> indices, std::span<const float> values, Rows& rows) const {
    const auto width = static_cast<std::size_t>(builder.description().features);
    if (columns_ != width) return Unlike(*this, builder);
    std::vector<float> dense((starts.size() - 1) * width);
    for (std::size_t r = 0; r + 1 < starts.size(); ++r)
      for (auto i = static_cast<std::size_t>(starts[r]); i < static_cast<std::size_t>(starts[r + 1]); ++i) {
        if (indices[i] < 0 || static_cast<std::size_t>(indices[i]) >= width)
          return Error{Code::kBadInput, Str("found column ", indices[i], ", expected 0 to ", width - 1)};
        dense[r * width + static_cast<std::size_t>(indices[i])] += values[i];
      }
    return builder.FromNumbers(dense, rows);
  }

  const std::uint64_t columns_;
  const Numbers starts_, indices_, values_;
};

}  // namespace

double Numbers::At(std::uint64_t i) const {
  double value = 0;
  WithType(type, [&](auto zero) {
    value = static_cast<double>(Load<decltype(zero)>(data + static_cast<std::ptrdiff_t>(i) * stride));
  });
  return value;
}

void Numbers::CopyTo(std::uint64_t first, std::span<float> out) const { Copy(*this, first, out); }
void Numbers::CopyTo(std::uint64_t first, std::span<std::int64_t> out) const { Copy(*this, first, out); }

std::unique_ptr<Table> DenseTable(std::uint64_t rows, std::vector<std::uint64_t> shape, const Numbers& numbers,
                                  std::ptrdiff_t row_stride, std::vector<std::string> names) {
  return std::make_unique<Dense>(rows, std::move(shape), numbers, row_stride, std::move(names));
}

std::unique_ptr<Table> SparseTable(std::uint64_t rows, std::uint64_t columns, const Numbers& starts,
                                   const Numbers& indices, const Numbers& values) {
  return std::make_unique<Sparse>(rows, columns, starts, indices, values);
}

}  // namespace freshet::data
