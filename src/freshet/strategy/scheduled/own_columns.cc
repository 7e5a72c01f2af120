#include "strategy/scheduled/own_columns.h"

#include <numeric>

namespace freshet::strategy::scheduled {
namespace {

// Every entry of the rows that is not zero, row by row.
template <class Visit>
void VisitEntries(const data::Batch& rows, std::uint32_t features, const Visit& visit) {
  for (std::uint32_t r = 0; r < rows.rows; ++r) {
    if (rows.sparse()) {
      for (std::uint32_t e = rows.offsets[r]; e < rows.offsets[r + 1]; ++e)
        if (rows.indices[e] < features && rows.values[e] != 0) visit(r, rows.indices[e], rows.values[e]);
    } else {
      const float* const numbers = rows.dense + r * rows.width;
      for (std::uint32_t j = 0; j < features; ++j)
        if (numbers[j] != 0) visit(r, j, numbers[j]);
    }
    visit(r, features, 1.0f);
  }
}

}  // namespace

OwnColumns::OwnColumns(const data::Batch& rows, std::uint32_t features, const Owns& owns)
    : begins_(std::size_t{features} + 2, 0) {
  std::vector<bool> owned(std::size_t{features} + 1);
  for (std::uint32_t j = 0; j <= features; ++j) owned[j] = owns(j);
  VisitEntries(rows, features, [&](std::uint32_t, std::uint32_t j, float) {
    if (owned[j]) ++begins_[j + 1];
  });
  std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
  rows_.resize(begins_.back());
  values_.resize(begins_.back());
  std::vector<std::size_t> next(begins_.begin(), begins_.end() - 1);
  VisitEntries(rows, features, [&](std::uint32_t r, std::uint32_t j, float value) {
    if (!owned[j]) return;
    rows_[next[j]] = r;
    values_[next[j]++] = value;
  });
}

double Product(const Column& a, const Column& b, std::span<const double> row_weights) {
  const auto one = [&](std::size_t i, std::size_t k) {
    return row_weights[a.rows[i]] * (static_cast<double>(a.values[i]) * static_cast<double>(b.values[k]));
  };
  double sum = 0;
  const std::size_t n = row_weights.size();
  if (a.rows.size() == n && b.rows.size() == n) {  // every row has both
    for (std::size_t i = 0; i < n; ++i) sum += one(i, i);
    return sum;
  }
  for (std::size_t i = 0, k = 0; i < a.rows.size() && k < b.rows.size();) {
    if (a.rows[i] == b.rows[k]) sum += one(i, k);
    const bool next_a = a.rows[i] <= b.rows[k], next_b = b.rows[k] <= a.rows[i];
    i += next_a ? 1 : 0;
    k += next_b ? 1 : 0;
  }
  return sum;
}

}  // namespace freshet::strategy::scheduled
