#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace freshet::data {

// Where an input is cut into parts: part k is the bytes from cuts[k] to cuts[k + 1], over all files one after another.
using Cuts = std::vector<std::uint64_t>;

// Parts of about the same number of bytes.
Cuts EvenCuts(std::uint64_t bytes, std::uint64_t parts);

// Parts of about the same number of rows, when each of the even parts of `bytes` has as many rows as `rows` says;
// within one of those, rows are taken to be equally long.
Cuts CutsByRows(std::uint64_t bytes, std::span<const double> rows, std::uint64_t parts);

// Counts rows by where they stand: in so many even parts of all bytes.
class RowsByPlace {
 public:
  RowsByPlace(std::uint64_t bytes, std::uint64_t places) : edges_(EvenCuts(bytes, places)), rows_(places, 0) {}
  // So many rows that stand, evenly, from one byte to another.
  void Add(std::uint64_t begin, std::uint64_t end, std::uint64_t rows);
  void Clear() { rows_.assign(rows_.size(), 0); }
  void Set(const std::vector<double>& rows) {  // as counted before; of other places they mean nothing
    if (rows.size() == rows_.size()) rows_ = rows;
  }
  const std::vector<double>& rows() const { return rows_; }

 private:
  Cuts edges_;
  std::vector<double> rows_;
};

// By how much the part with most rows is above the mean: 0.1 is ten percent. 0 when there are no rows.
double Imbalance(std::span<const double> rows);

}  // namespace freshet::data
