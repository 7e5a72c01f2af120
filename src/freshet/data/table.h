#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/formats/format.h"
#include "data/row_builder.h"

namespace freshet::data {

// Numbers in memory of somebody else's, `stride` bytes from one to the next.
struct Numbers {
  enum class Type { kF32, kF64, kI8, kU8, kI16, kU16, kI32, kU32, kI64, kU64 };
  const std::byte* data = nullptr;
  Type type = Type::kF32;
  std::ptrdiff_t stride = sizeof(float);

  double At(std::uint64_t i) const;
  // Those from `first` on, as many as fit.
  void CopyTo(std::uint64_t first, std::span<float> out) const;
  void CopyTo(std::uint64_t first, std::span<std::int64_t> out) const;
};

// Rows in memory: somebody else's arrays, which are read where they lie. What a format is to a file, a kind of table is
// to memory: it describes itself, and turns some rows of it into features, through a RowBuilder, so that they come out
// as they would from a text or at a server.
//
// Ownership: borrows all memory, which stays as it is until the table is gone.
// Threads:   all calls are const.
class Table {
 public:
  // A label for each row. With names, the numbers are positions in them.
  struct Labels {
    Numbers numbers;
    std::vector<std::string> names = {};
  };

  explicit Table(std::uint64_t rows) : rows_(rows) {}
  virtual ~Table() = default;

  std::uint64_t rows() const { return rows_; }
  // About how many numbers a row has.
  virtual std::uint64_t numbers_of_row() const = 0;
  // Fills in what an empty description says of features (not of labels). kInvalid for options that ask for what cannot
  // be.
  virtual Result<void> Describe(const InputOptions& options, Description& description) const = 0;
  // Rows first … first+count-1, without labels and weights. The builder counts them from `first`. kInvalid when its
  // description is one of rows that these cannot be, else as the builder.
  virtual Result<void> Read(const RowBuilder& builder, std::uint64_t first, std::size_t count, Rows& rows,
                            std::vector<NewName>& names) const = 0;

  // Whoever makes a table says these, too, if there are any.
  std::optional<Labels> labels = {};
  std::optional<Numbers> weights = {};

 private:
  const std::uint64_t rows_;
};

// Rows of as many numbers each: an array of two dimensions, or of more, which are one row's then (images: channels,
// height, width). `row_stride` is in bytes; `numbers` are those of the first row. Names of columns may be left out.
std::unique_ptr<Table> DenseTable(std::uint64_t rows, std::vector<std::uint64_t> shape, const Numbers& numbers,
                                  std::ptrdiff_t row_stride, std::vector<std::string> names = {});

// Compressed sparse rows: row r has the columns indices[starts[r]] … in ascending order, with their values.
std::unique_ptr<Table> SparseTable(std::uint64_t rows, std::uint64_t columns, const Numbers& starts,
                                   const Numbers& indices, const Numbers& values);

// Some rows of one column: numbers, or texts, or texts that stand in a dictionary. What is missing has no bit in `valid`.
struct ColumnPiece {
  std::uint64_t rows = 0;
  Numbers numbers = {};         // of texts: where each begins, and where the last ends, in `bytes`
  const char* bytes = nullptr;  // of texts
  std::shared_ptr<const ColumnPiece> dictionary = {};  // `numbers` are places in this piece
  const std::uint8_t* valid = nullptr;                 // a bit for each row, from `first_bit` on; null: all are there
  std::uint64_t first_bit = 0;
};

// Columns by name, each in pieces of its own: a data frame, or arrays beside each other. Texts are categories. `label`
// is the column that has the labels; "" guesses as for a table in a file, "none" if there is none or they are given
// otherwise. Ratings (InputOptions::format) are a user, an item and, as label, a rating, whatever their names. The
// description of a model picks its columns by their names, and lets others be.
struct TableColumn {
  std::string name;
  std::vector<ColumnPiece> pieces;
};
Result<std::unique_ptr<Table>> ColumnTable(std::vector<TableColumn> columns, const std::string& label);

}  // namespace freshet::data
