#pragma once

#include <cstddef>
#include <cstdint>

namespace freshet::data {

// An index that stands for nothing the model has seen: an unknown user, item or category.
inline constexpr std::uint32_t kUnseen = 0xffffffff;

// Labelled rows, ready for a model: a view into memory that somebody else owns and will reuse.
// Either sparse (offsets, indices, values: row r has the entries offsets[r] … offsets[r+1]-1) or dense (row-major,
// `width` floats a row). A rating is a sparse row of two entries, user first and item second, each counted from 0 in an
// index space of its own.
struct Batch {
  std::size_t rows = 0;
  const float* labels = nullptr;           // NaN where a row has none
  const float* weights = nullptr;          // null: every row weighs 1
  const std::uint64_t* samples = nullptr;  // number of the row in its data set
  const std::int64_t* times = nullptr;     // seconds since 1970; null: the rows have none

  const std::uint32_t* offsets = nullptr;
  const std::uint32_t* indices = nullptr;
  const float* values = nullptr;

  const float* dense = nullptr;
  std::size_t width = 0;

  bool sparse() const { return offsets != nullptr; }
  float weight(std::size_t row) const { return weights == nullptr ? 1.0f : weights[row]; }
  std::size_t entries() const { return sparse() ? offsets[rows] - offsets[0] : rows * width; }

  // The rows begin … end-1 of this batch.
  Batch Slice(std::size_t begin, std::size_t end) const {
    Batch part = *this;
    part.rows = end - begin;
    part.labels += begin;
    if (weights != nullptr) part.weights += begin;
    if (samples != nullptr) part.samples += begin;
    if (times != nullptr) part.times += begin;
    if (sparse())
      part.offsets += begin;
    else
      part.dense += begin * width;
    return part;
  }
};

}  // namespace freshet::data
