#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "data/batch.h"
#include "data/labels.h"

namespace freshet::deploy {

// How wrong predictions were, each made before its label was learned from (prequential): the mean over everything and
// over about the last thousand and hundred thousand rows (each row counts by 1/N, as a mean of the first N).
struct Quality {
  double rows = 0, sum = 0, recent = 0, longer = 0;

  // An error that is no finite number does not count: one row must not spoil the mean for ever.
  void Add(double error) {
    if (!std::isfinite(error)) return;
    rows += 1;
    sum += error;
    recent += (error - recent) / std::min(rows, 1'000.0);
    longer += (error - longer) / std::min(rows, 100'000.0);
  }
  double mean() const { return rows > 0 ? sum / rows : 0; }
  std::vector<double> Save() const { return {rows, sum, recent, longer}; }
  bool Load(std::span<const double> saved) {
    if (saved.size() != 4) return false;
    rows = saved[0], sum = saved[1], recent = saved[2], longer = saved[3];
    return true;
  }
};

// The error of one row by its scores: 0 or 1 for classes, the squared difference for numbers (both in the units of the
// data).
inline double ErrorOf(data::Labels::Kind task, std::span<const float> scores, float label) {
  if (task == data::Labels::Kind::kBinary) return (scores[0] > 0) != (label > 0.5f) ? 1 : 0;
  if (task == data::Labels::Kind::kClasses)
    return static_cast<float>(std::max_element(scores.begin(), scores.end()) - scores.begin()) != label ? 1 : 0;
  const double distance = static_cast<double>(scores[0]) - label;
  return distance * distance;
}

}  // namespace freshet::deploy
