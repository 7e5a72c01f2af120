#include "data/table.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "data/drive.h"
#include "data/open.h"
#include "data/table_reader.h"
#include "data/world_testing.h"

namespace freshet::data {
namespace {

template <class T>
Numbers Of(const std::vector<T>& values, Numbers::Type type, std::size_t every = 1) {
  return {reinterpret_cast<const std::byte*>(values.data()), type, static_cast<std::ptrdiff_t>(every * sizeof(T))};
}

InputOptions NotStandardised() {
  InputOptions options;
  options.standardise = false;
  return options;
}

InputOptions Regression() {
  InputOptions options;
  options.task = Labels::Kind::kReal;
  return options;
}

Result<Reading> ReadTable(World& world, std::shared_ptr<const Table> table, const InputOptions& options,
                          Description description = {}, Part part = {}, std::uint64_t permuted = 0) {
  Reading reading;
  reading.description = std::move(description);
  const auto source =
      TRY(TableReader::Open(std::move(table), {.part = part, .labelled = false}, options, reading.description));
  if (permuted > 0) source->Permute(permuted);
  TRY(DriveInOrder(world.env().executor, *source, [&](Rows& rows) -> Result<void> {
    reading.Append(rows);
    return {};
  }));
  return reading;
}

// Whatever the type and the strides of an array, its rows are those of a file with the same numbers.
TEST(Table, IsReadAsATextWithTheSameNumbersWouldBe) {
  World world;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "tables");
    const std::size_t rows = 1 + random.Below(3000), width = 1 + random.Below(5), every = 1 + random.Below(3);
    const bool wide = random.Below(2) == 0, by_columns = random.Below(2) == 0;
    std::vector<double> doubles(rows * width * every);
    std::vector<float> floats(doubles.size());
    std::vector<std::int32_t> labels(rows);
    std::string text;
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < width; ++c) {
        const std::size_t at = (by_columns ? c * rows + r : r * width + c) * every;
        const auto value = static_cast<float>(static_cast<double>(random.Below(20'000)) / 64 - 100);
        doubles[at] = floats[at] = value;
        text += Str(value, ",");
      }
      labels[r] = static_cast<std::int32_t>(random.Below(2));
      text += Str(labels[r], "\n");
    }
    Numbers numbers = wide ? Of(doubles, Numbers::Type::kF64) : Of(floats, Numbers::Type::kF32);
    const auto step = numbers.stride * static_cast<std::ptrdiff_t>(every);
    numbers.stride = by_columns ? step * static_cast<std::ptrdiff_t>(rows) : step;
    std::shared_ptr<Table> table =
        DenseTable(rows, {width}, numbers, by_columns ? step : step * static_cast<std::ptrdiff_t>(width));
    table->labels = Table::Labels{Of(labels, Numbers::Type::kI32)};
    InputOptions options;
    options.header = "no";
    options.task = Labels::Kind::kReal;
    options.format = "csv";
    auto file = ReadRows(world, FilesAt({world.Write("table", text)}), options, {});
    ASSERT_TRUE(file.ok()) << file.error().text;
    const auto memory = ReadTable(world, table, options);
    ASSERT_TRUE(memory.ok()) << memory.error().text;
    EXPECT_EQ(memory.value().dense, file.value().dense);
    EXPECT_EQ(memory.value().labels, file.value().labels);
    EXPECT_EQ(memory.value().samples, file.value().samples);
  }
}

struct Matrix {
  std::vector<std::int32_t> starts = {0}, indices;
  std::vector<double> values;
  std::vector<float> dense;
  std::uint64_t rows, columns;

  Matrix(std::uint64_t seed, std::uint64_t r, std::uint64_t c) : dense(r * c), rows(r), columns(c) {
    base::Random random(seed, "matrices");
    for (std::uint64_t i = 0; i < rows * columns; ++i) {
      if (random.Below(3) == 0) {
        dense[i] = static_cast<float>(random.Below(100) + 1) / 4;
        indices.push_back(static_cast<std::int32_t>(i % columns));
        values.push_back(dense[i]);
      }
      if ((i + 1) % columns == 0) starts.push_back(static_cast<std::int32_t>(indices.size()));
    }
  }
  std::shared_ptr<Table> Sparse() const {
    return SparseTable(rows, columns, Of(starts, Numbers::Type::kI32), Of(indices, Numbers::Type::kI32),
                       Of(values, Numbers::Type::kF64));
  }
  std::shared_ptr<Table> Dense() const {
    return DenseTable(rows, {columns}, Of(dense, Numbers::Type::kF32), static_cast<std::ptrdiff_t>(columns * 4));
  }
};

// A model of either kind of rows takes both.
TEST(Table, ServesModelsOfTheOtherForm) {
  World world;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    const Matrix matrix(seed, 1 + seed * 37, 1 + seed % 7);
    const auto sparse = ReadTable(world, matrix.Sparse(), {});
    const auto dense = ReadTable(world, matrix.Dense(), NotStandardised());
    ASSERT_TRUE(sparse.ok() && dense.ok());
    EXPECT_EQ(dense.value().dense, matrix.dense);
    const auto as_sparse = ReadTable(world, matrix.Dense(), {}, sparse.value().description);
    const auto as_dense = ReadTable(world, matrix.Sparse(), {}, dense.value().description);
    ASSERT_TRUE(as_sparse.ok()) << as_sparse.error().text;
    ASSERT_TRUE(as_dense.ok()) << as_dense.error().text;
    EXPECT_EQ(as_sparse.value().indices, sparse.value().indices);
    EXPECT_EQ(as_sparse.value().values, sparse.value().values);
    EXPECT_EQ(as_sparse.value().offsets, sparse.value().offsets);
    EXPECT_EQ(as_dense.value().dense, dense.value().dense);
  }
}

TEST(Table, GivesEachRowToExactlyOnePartInWhateverOrderBlocksCome) {
  World world;
  const Matrix matrix(1, 90'001, 5);
  std::vector<std::uint64_t> met;
  for (std::uint64_t k = 0; k < 4; ++k) {
    const auto part = ReadTable(world, matrix.Dense(), {}, {}, {k, 4}, 7);
    ASSERT_TRUE(part.ok());
    const auto& samples = part.value().samples;
    EXPECT_FALSE(std::is_sorted(samples.begin(), samples.end()));
    met.insert(met.end(), samples.begin(), samples.end());
  }
  std::sort(met.begin(), met.end());
  ASSERT_EQ(met.size(), matrix.rows);
  for (std::uint64_t r = 0; r < met.size(); ++r) ASSERT_EQ(met[r], r);
}

TEST(Table, NamesTheRowThatCannotBe) {
  World world;
  Matrix matrix(2, 20'000, 3);
  matrix.dense[15'000 * 3 + 1] = INFINITY;
  const auto read = ReadTable(world, matrix.Dense(), {});
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().text.find("row 15000, feature 1: found inf"), std::string::npos) << read.error().text;
}

TEST(Table, KnowsClassesByTheirNames) {
  World world;
  const Matrix matrix(3, 6, 2);
  const std::vector<std::uint8_t> codes = {2, 0, 1, 1, 0, 2};
  auto table = matrix.Dense();
  table->labels = Table::Labels{Of(codes, Numbers::Type::kU8), {"pear", "apple", "10"}};
  const auto read = ReadTable(world, table, {});
  ASSERT_TRUE(read.ok()) << read.error().text;
  const auto& names = read.value().description.labels.names;
  for (std::size_t r = 0; r < codes.size(); ++r)
    EXPECT_EQ(names[static_cast<std::size_t>(read.value().labels[r])], table->labels->names[codes[r]]);
}

TEST(Table, RefusesWeightsAndLabelsThatCannotBe) {
  World world;
  const Matrix matrix(4, 3, 2);
  const std::vector<float> weights = {1, -1, 0}, labels = {0, 1, NAN};
  auto table = matrix.Dense();
  table->weights = Of(weights, Numbers::Type::kF32);
  const auto weighted = ReadTable(world, table, {});
  ASSERT_FALSE(weighted.ok());
  EXPECT_EQ(weighted.error().text, "row 1: weight -1, expected a finite number of 0 or more");
  table = matrix.Dense();
  table->labels = Table::Labels{Of(labels, Numbers::Type::kF32)};
  const auto labelled = ReadTable(world, table, Regression());
  ASSERT_FALSE(labelled.ok());
  EXPECT_EQ(labelled.error().text, "row 2: label nan, expected a number");
}

}  // namespace
}  // namespace freshet::data
