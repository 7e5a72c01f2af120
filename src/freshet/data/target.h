#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace freshet::data {

class RowSource;

// How labels that are numbers are centred and scaled for a model: it learns (label - mean) / deviation, and what it
// then says is turned back. Update rules are made for numbers near one; a price of 180,000 would take them for ever.
// Labels of rows, losses and predictions are in the units of the data everywhere but where a model learns.
//
// Mean and deviation are constants, found before training (EstimateTarget), so that training gives the same however
// often it is stopped and by however many it is done. Only a model that begins with no data has none to look at: there
// they follow the first kSettledRows labels and then stay.
//
// Threads: one at a time.
class Target {
 public:
  static constexpr std::uint64_t kSettledRows = 1000;

  Target() = default;                     // labels are learned as they are
  Target(double mean, double deviation);  // CHECKs that both are finite and the deviation above 0
  // Of a sample of labels. One in a thousand at either end counts as the next within: a stray one must not set the
  // scale. Labels that are no finite numbers do not count; without any that do, labels are learned as they are.
  static Target Of(std::vector<float> labels);
  // Begins with nothing, and follows the labels it observes.
  static Target Moving();
  // As it was when saved: `rows` labels have been observed, `squares` is the sum of their squared distances from the
  // mean. kCorrupt when it cannot have been.
  static Result<Target> Load(double mean, double deviation, std::uint64_t rows, double squares);

  bool any() const { return scales_; }
  bool moving() const { return moving_; }
  double mean() const { return mean_; }
  double deviation() const { return deviation_; }
  std::uint64_t rows() const { return rows_; }  // observed, while it moves
  double squares() const { return squares_; }

  void Observe(float label);  // counts only while it moves
  float Scaled(float label) const { return static_cast<float>((static_cast<double>(label) - mean_) / deviation_); }
  float Unscaled(float score) const { return static_cast<float>(static_cast<double>(score) * deviation_ + mean_); }
  void Scale(std::span<float> labels) const;    // in place; NaN stays
  void Unscale(std::span<float> scores) const;  // in place

  bool operator==(const Target&) const = default;

 private:
  void SetDeviation(double variance);

  bool scales_ = false, moving_ = false;
  double mean_ = 0, deviation_ = 1, squares_ = 0;
  std::uint64_t rows_ = 0;
};

// Mean and deviation of the labels of some rows from everywhere in the source, where it can be read from anywhere, or
// else from its head. The source stays where it is.
Result<Target> EstimateTarget(const RowSource& source);

}  // namespace freshet::data
