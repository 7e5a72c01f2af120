#pragma once

#include "deploy/drift/drift.h"

namespace freshet::deploy {

// The Page–Hinkley test (Page 1954, Hinkley 1971) for a rise of the mean. Each error is compared with the mean of those
// before it, in units of their standard deviation, so that the test fits a loss of any size:
//
//   z = min((error - mean) / deviation, 5),   sum = max(0, sum + z - 0.1)
//
// A sum above 50 is a drift, above 25 a warning. A steady rise by k deviations is found after about 50 / (k - 0.1)
// rows, if the rows before it are many more; a rise below a tenth of a deviation is tolerated. That one row counts for
// at most 5 keeps an outlier, or two rare errors in a row, from being an alarm. The first 30 rows only count, and so do
// rows before which all errors were equal.
class PageHinkley final : public DriftDetector {
 public:
  std::string_view name() const override { return "page-hinkley"; }
  std::vector<double> Save() const override;
  [[nodiscard]] bool Load(std::span<const double> state) override;

 private:
  Drift OnError(double error) override;

  ErrorMoments errors_;
  double sum_ = 0;
  double rising_ = 0;  // errors since the sum was 0
};

}  // namespace freshet::deploy
