#include "data/moments.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace freshet::data {

Moments::Moments(std::size_t columns)
    : count_(columns), mean_(columns), square_(columns), shift_(columns), scale_(columns) {}

void Moments::Observe(const float* row) {
  rows_ += 1;
  const std::size_t columns = mean_.size();
  double* const count = count_.data();
  double* const mean = mean_.data();
  double* const square = square_.data();
  if (complete_) {
    float probe = 0;  // becomes NaN if any value is
#pragma omp simd reduction(+ : probe)
    for (std::size_t j = 0; j < columns; ++j) probe += row[j] * 0.0f;
    complete_ = !std::isnan(probe);
  }
  if (complete_) {  // one division for all columns
    const double share = 1 / rows_;
#pragma omp simd
    for (std::size_t j = 0; j < columns; ++j) {
      const double difference = row[j] - mean[j];
      mean[j] += difference * share;
      square[j] += difference * (row[j] - mean[j]);
      count[j] = rows_;
    }
  } else {
    for (std::size_t j = 0; j < columns; ++j) {
      if (std::isnan(row[j])) continue;
      count[j] += 1;
      const double difference = row[j] - mean[j];
      mean[j] += difference / count[j];
      square[j] += difference * (row[j] - mean[j]);
    }
  }
  if (rows_ >= next_refresh_) Refresh();
}

void Moments::Refresh() {
  for (std::size_t j = 0; j < mean_.size(); ++j) {
    const double variance = square_[j] / std::max(count_[j], 1.0);
    shift_[j] = static_cast<float>(mean_[j]);
    // A column that has not varied yet says nothing: it becomes 0.
    const bool varies = variance > 1e-12 * mean_[j] * mean_[j] && variance > 0;
    constexpr double kMost = std::numeric_limits<float>::max();
    scale_[j] = varies ? static_cast<float>(std::min(1 / std::sqrt(variance), kMost)) : 0.0f;
  }
  next_refresh_ = std::max(rows_ + 1, std::floor(rows_ * 1.01));
}

void Moments::Apply(float* row) const {
  constexpr float kFurthest = 10;
  const std::size_t columns = shift_.size();
  const float* const shift = shift_.data();
  const float* const scale = scale_.data();
#pragma omp simd
  for (std::size_t j = 0; j < columns; ++j) {
    const float value = std::min(kFurthest, std::max(-kFurthest, (row[j] - shift[j]) * scale[j]));
    row[j] = std::isnan(row[j]) ? 0.0f : value;
  }
}

std::vector<double> Moments::Save() const {
  std::vector<double> out = {rows_};
  for (const auto* part : {&count_, &mean_, &square_}) out.insert(out.end(), part->begin(), part->end());
  out.insert(out.end(), shift_.begin(), shift_.end());
  out.insert(out.end(), scale_.begin(), scale_.end());
  out.push_back(next_refresh_);
  return out;
}

Moments Moments::Load(const std::vector<double>& saved) {
  CHECK(saved.size() >= 2 && (saved.size() - 2) % 5 == 0);
  const std::size_t columns = (saved.size() - 2) / 5;
  Moments moments(columns);
  moments.rows_ = saved[0];
  const auto part = [&](std::size_t k) { return saved.begin() + 1 + static_cast<std::ptrdiff_t>(k * columns); };
  moments.count_.assign(part(0), part(1));
  moments.mean_.assign(part(1), part(2));
  moments.square_.assign(part(2), part(3));
  moments.shift_.assign(part(3), part(4));
  moments.scale_.assign(part(4), part(5));
  moments.next_refresh_ = saved.back();
  moments.complete_ =
      std::all_of(moments.count_.begin(), moments.count_.end(), [&](double c) { return c == moments.rows_; });
  if (moments.rows_ >= moments.next_refresh_) moments.Refresh();  // of merged ones
  return moments;
}

}  // namespace freshet::data
