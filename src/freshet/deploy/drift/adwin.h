#pragma once

#include "deploy/drift/drift.h"

namespace freshet::deploy {

// Adaptive windowing (Bifet and Gavaldà, "Learning from Time-Changing Data with Adaptive Windowing", 2007): keeps the
// longest window of recent errors that looks as if nothing had changed in it. Every 32 rows each cut of the window into
// an old and a new part is tried; where the means of the two differ by more than chance explains, there was a change:
//
//   |difference| > sqrt(2 m v ln(2 ln n / delta)) + 2/3 m R ln(2 ln n / delta),   m = 1/n_old + 1/n_new,
//
// with v the variance, R the range and n the number of errors in the window (the paper's R is 1), and delta 0.002. If
// the mean rose, that is a drift; if it fell, the window loses its old part and nothing is said. It never warns.
//
// The window is an exponential histogram: buckets of 1, 2, 4, … errors, at most five of a size, so that its memory and
// the time of a check grow with the logarithm of its length.
class Adwin final : public DriftDetector {
 public:
  std::string_view name() const override { return "adwin"; }
  std::vector<double> Save() const override;
  [[nodiscard]] bool Load(std::span<const double> state) override;

  double rows() const { return Window().moments.count; }  // in the window
  std::size_t buckets() const { return buckets_.size(); }

 private:
  struct Bucket {
    ErrorMoments moments;
    double low = 0, high = 0;  // the least and the greatest error

    void Merge(const Bucket& newer);
    bool plausible() const;
  };
  enum class Change { kNone, kFall, kRise };

  Drift OnError(double error) override;
  void Compress();
  Bucket Window() const;  // all buckets as one
  Change FindChange() const;

  std::vector<Bucket> buckets_;  // the oldest first; sizes are powers of two that never rise
  int until_check_ = 32;
};

}  // namespace freshet::deploy
