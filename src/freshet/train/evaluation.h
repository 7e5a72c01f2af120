#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/batch.h"
#include "data/description.h"
#include "data/labels.h"
#include "data/target.h"
#include "model/model.h"

namespace freshet::train {

// How good predictions were, summed up row by row. What applies depends on the task: error rate, log loss (for
// probabilities) and AUC for two classes, error rate and log loss for several, RMSE for numbers, and for kAuto
// (clusters, which have no labels) the mean loss alone. Labels and scores come as the model learns them; where those
// are scaled (data::Target), everything is told in the units of the data.
//
// AUC is counted in bins of scores that share their sign, exponent and first 12 bits of mantissa, which needs 16 MB
// whatever the number of rows; scores within 0.025 % of each other count as equal.
//
// Threads: one at a time; sums of several threads are joined by Add(other).
class Evaluation {
 public:
  enum class Extent { kSums, kWithAuc };
  explicit Evaluation(data::Labels::Kind task = data::Labels::Kind::kReal, Extent extent = Extent::kSums,
                      const data::Target& target = {});

  // Scores of the rows, `scores` each, and their summed, weighted loss.
  void Add(const data::Batch& batch, std::span<const float> scores, double weighted_loss);
  // Ratings and the like: only the loss is known, of squared errors ½ e².
  void AddLoss(std::uint64_t rows, double weighted_loss, double squared_errors);
  void Add(const Evaluation& other);

  std::uint64_t rows() const { return rows_; }
  double weight() const { return weight_; }
  double loss() const { return weight_ > 0 ? total_loss() / weight_ : 0; }  // mean
  double total_loss() const { return loss_ * unit_ * unit_; }
  std::optional<double> error_rate() const;
  std::optional<double> rmse() const;
  // The RMSE of whoever always said the mean of these labels: what a model should beat. Nothing after AddLoss.
  std::optional<double> rmse_of_mean() const;
  std::optional<double> auc() const;
  data::Labels::Kind task() const { return task_; }

  // The sums, to save and continue; AUC is not kept.
  std::vector<double> Save() const {
    return {static_cast<double>(rows_), weight_, loss_, wrong_, squares_, labelled_, labels_, label_squares_};
  }
  bool Load(const std::vector<double>& saved);  // false when these are not such sums

 private:
  data::Labels::Kind task_;
  std::uint64_t rows_ = 0;
  double unit_;  // of scores, in those of the data
  double weight_ = 0, loss_ = 0, wrong_ = 0, squares_ = 0;
  double labelled_ = 0, labels_ = 0, label_squares_ = 0;  // weight and sums of labels, where they are known
  std::vector<float> bins_[2];                            // weight of rows by score, negatives and positives
};

// What a model's predictions are judged by: the labels' kind, or kAuto for clusters.
data::Labels::Kind TaskOf(const model::Model& model, const data::Description& description);

// Sums for what a model has to say of rows whose labels went through ScaleLabels.
Evaluation SumsFor(const model::Model& model, const data::Description& description,
                   Evaluation::Extent extent = Evaluation::Extent::kSums);

}  // namespace freshet::train
