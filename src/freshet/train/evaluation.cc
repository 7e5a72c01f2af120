#include "train/evaluation.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace freshet::train {
namespace {

constexpr int kBinBits = 21;  // sign, 8 of exponent, 12 of mantissa

// A number that orders as the float does, cut to its top bits.
std::size_t BinOf(float score) {
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0f);  // -0 becomes 0
  const std::uint32_t ordered = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return ordered >> (32 - kBinBits);
}

}  // namespace

Evaluation::Evaluation(data::Labels::Kind task, Extent extent, const data::Target& target)
    : task_(task), unit_(target.deviation()) {
  if (extent == Extent::kWithAuc && task == data::Labels::Kind::kBinary)
    for (auto& bins : bins_) bins.resize(std::size_t{1} << kBinBits);
}

void Evaluation::Add(const data::Batch& batch, std::span<const float> scores, double weighted_loss) {
  const std::size_t k = batch.rows == 0 ? 1 : scores.size() / batch.rows;
  for (std::size_t r = 0; r < batch.rows; ++r) {
    const float weight = batch.weight(r), label = batch.labels[r];
    weight_ += weight;
    if (task_ == data::Labels::Kind::kBinary) {
      wrong_ += (scores[r] > 0) != (label > 0) ? weight : 0.0f;
      if (!bins_[0].empty()) bins_[label > 0 ? 1 : 0][BinOf(scores[r])] += weight;
    } else if (task_ == data::Labels::Kind::kClasses) {
      const auto row = scores.subspan(r * k, k);
      wrong_ +=
          std::max_element(row.begin(), row.end()) - row.begin() != static_cast<std::ptrdiff_t>(label) ? weight : 0.0f;
    } else if (task_ == data::Labels::Kind::kReal) {
      const double error = static_cast<double>(scores[r]) - label;
      squares_ += weight * error * error;
      labelled_ += weight;
      labels_ += static_cast<double>(weight) * label;
      label_squares_ += static_cast<double>(weight) * label * label;
    }
  }
  rows_ += batch.rows;
  loss_ += weighted_loss;
}

void Evaluation::AddLoss(std::uint64_t rows, double weighted_loss, double squared_errors) {
  rows_ += rows;
  weight_ += static_cast<double>(rows);
  loss_ += weighted_loss;
  squares_ += squared_errors;
}

void Evaluation::Add(const Evaluation& other) {
  rows_ += other.rows_;
  weight_ += other.weight_;
  loss_ += other.loss_;
  wrong_ += other.wrong_;
  squares_ += other.squares_;
  labelled_ += other.labelled_;
  labels_ += other.labels_;
  label_squares_ += other.label_squares_;
  for (int side = 0; side < 2; ++side)
    for (std::size_t i = 0; i < std::min(bins_[side].size(), other.bins_[side].size()); ++i)
      bins_[side][i] += other.bins_[side][i];
}

bool Evaluation::Load(const std::vector<double>& saved) {
  if (saved.size() != 8) return false;
  rows_ = static_cast<std::uint64_t>(saved[0]);
  weight_ = saved[1];
  loss_ = saved[2];
  wrong_ = saved[3];
  squares_ = saved[4];
  labelled_ = saved[5];
  labels_ = saved[6];
  label_squares_ = saved[7];
  return true;
}

std::optional<double> Evaluation::error_rate() const {
  const bool classes = task_ == data::Labels::Kind::kBinary || task_ == data::Labels::Kind::kClasses;
  if (!classes || weight_ == 0) return std::nullopt;
  return wrong_ / weight_;
}

std::optional<double> Evaluation::rmse() const {
  if (task_ != data::Labels::Kind::kReal || weight_ == 0) return std::nullopt;
  return std::sqrt(squares_ / weight_) * unit_;
}

std::optional<double> Evaluation::rmse_of_mean() const {
  if (!rmse() || labelled_ != weight_) return std::nullopt;
  const double mean = labels_ / weight_;
  return std::sqrt(std::max(0.0, label_squares_ / weight_ - mean * mean)) * unit_;
}

std::optional<double> Evaluation::auc() const {
  if (bins_[0].empty()) return std::nullopt;
  double negatives = 0, positives = 0, area = 0;
  for (std::size_t i = 0; i < bins_[0].size(); ++i) {
    area += bins_[1][i] * (negatives + 0.5 * bins_[0][i]);
    negatives += bins_[0][i];
    positives += bins_[1][i];
  }
  if (negatives == 0 || positives == 0) return std::nullopt;
  return area / (negatives * positives);
}

data::Labels::Kind TaskOf(const model::Model& model, const data::Description& description) {
  return model.Supervised() ? description.labels.kind : data::Labels::Kind::kAuto;
}

Evaluation SumsFor(const model::Model& model, const data::Description& description, Evaluation::Extent extent) {
  return Evaluation(TaskOf(model, description), extent, description.target);
}

}  // namespace freshet::train
