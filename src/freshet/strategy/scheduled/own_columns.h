#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "data/batch.h"

namespace freshet::strategy::scheduled {

// The rows that have a coordinate, in their order, and how much of it each has.
struct Column {
  std::span<const std::uint32_t> rows = {};
  std::span<const float> values = {};
};

// The columns of the coordinates that one member has, of all rows. Threads: one; none while it is made.
class OwnColumns {
 public:
  using Owns = std::function<bool(std::uint32_t coordinate)>;
  // Coordinates are the features, of which there are so many, and behind them the bias, which every row has once.
  OwnColumns(const data::Batch& rows, std::uint32_t features, const Owns& owns);

  std::uint32_t coordinates() const { return static_cast<std::uint32_t>(begins_.size() - 1); }
  Column column(std::uint32_t coordinate) const {  // empty where another has it, or no row
    const std::size_t begin = begins_[coordinate], count = begins_[coordinate + 1] - begin;
    return {std::span(rows_).subspan(begin, count), std::span(values_).subspan(begin, count)};
  }

 private:
  std::vector<std::size_t> begins_;  // by coordinate, and the end
  std::vector<std::uint32_t> rows_;
  std::vector<float> values_;
};

// Σ weight · a · b over rows that have both, in the order of rows: the same bits for (b, a).
double Product(const Column& a, const Column& b, std::span<const double> row_weights);

}  // namespace freshet::strategy::scheduled
