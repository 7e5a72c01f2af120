#pragma once

#include "deploy/drift/drift.h"

namespace freshet::deploy {

// The drift detection method (Gama et al., "Learning with Drift Detection", 2004): while nothing changes, the mean p of
// all errors settles and its standard error s shrinks. It remembers where p + s was lowest; p + s above that trough's
// p + 2s is a warning, above p + 3s a drift. The mean is that of all rows since the start, so that the rows it takes to
// find a change grow with the square root of the rows before it.
//
// The paper has 0/1 errors and s = sqrt(p(1 - p) / n); here s is the running standard deviation over sqrt(n), which is
// the same number for them and fits any other error too. The paper begins after 30 rows, when a lucky start makes an
// alarm of the first ordinary row; here nothing is said before 100 rows and before the mean lies 3s above the least
// error, which for 0/1 errors means that nine were 1. That divides the false alarms by about three.
class Ddm final : public DriftDetector {
 public:
  std::string_view name() const override { return "ddm"; }
  std::vector<double> Save() const override;
  [[nodiscard]] bool Load(std::span<const double> state) override;

 private:
  struct Trough {
    double mean = 0, deviation = 0;  // of the mean; 0 when none is remembered
    double count = 0;                // of errors until then
  };
  Drift OnError(double error) override;

  ErrorMoments errors_;
  double least_ = 0;  // of all errors, once there is one
  Trough lowest_;
};

}  // namespace freshet::deploy
