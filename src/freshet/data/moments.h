#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace freshet::data {

// Running mean and variance of columns, and the standardisation (x - mean) / deviation by what has been seen so far.
// A missing value (NaN) does not count and becomes 0, the mean. Values are held within ±10 deviations, so that a
// stray one cannot throw a model off. The factors follow the moments with a lag of at most 1 % of the rows seen, which
// saves a square root per value.
//
// Threads: one at a time.
class Moments {
 public:
  Moments() = default;
  explicit Moments(std::size_t columns);
  std::size_t columns() const { return mean_.size(); }
  double rows() const { return rows_; }

  void Observe(const float* row);  // one row of columns() values
  void Apply(float* row) const;    // in place

  // The state, for saving: 2 + 5 * columns numbers.
  std::vector<double> Save() const;
  static Moments Load(const std::vector<double>& saved);  // CHECKs the size
  bool operator==(const Moments&) const = default;

 private:
  void Refresh();

  bool complete_ = true;  // no value has been missing: every count is rows_
  double rows_ = 0, next_refresh_ = 1;
  std::vector<double> count_, mean_, square_;
  std::vector<float> shift_, scale_;  // x becomes (x - shift) * scale
};

}  // namespace freshet::data
