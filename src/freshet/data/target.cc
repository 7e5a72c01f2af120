#include "data/target.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "data/source.h"

namespace freshet::data {

Target::Target(double mean, double deviation) : scales_(true), mean_(mean), deviation_(deviation) {
  CHECK(std::isfinite(mean));
  CHECK(std::isfinite(deviation) && deviation > 0);
}

Target Target::Of(std::vector<float> labels) {
  std::erase_if(labels, [](float label) { return !std::isfinite(label); });
  if (labels.empty()) return {};
  std::sort(labels.begin(), labels.end());
  const std::size_t stray = labels.size() / 1000;
  const float least = labels[stray], most = labels[labels.size() - 1 - stray];
  Target target = Moving();
  for (const float label : labels) {
    ++target.rows_;
    const double distance = static_cast<double>(std::clamp(label, least, most)) - target.mean_;
    target.mean_ += distance / static_cast<double>(target.rows_);
    target.squares_ += distance * (static_cast<double>(std::clamp(label, least, most)) - target.mean_);
  }
  target.SetDeviation(target.squares_ / static_cast<double>(target.rows_));
  return {target.mean_, target.deviation_};
}

Target Target::Moving() {
  Target target;
  target.scales_ = target.moving_ = true;
  return target;
}

Result<Target> Target::Load(double mean, double deviation, std::uint64_t rows, double squares) {
  if (!std::isfinite(mean) || !std::isfinite(deviation) || deviation <= 0 || !std::isfinite(squares) || squares < 0 ||
      rows >= kSettledRows)
    return Error{Code::kCorrupt, "mean and deviation of the target cannot be"};
  Target target = Moving();
  target.mean_ = mean;
  target.deviation_ = deviation;
  target.rows_ = rows;
  target.squares_ = squares;
  return target;
}

void Target::Observe(float label) {
  if (!moving_ || !std::isfinite(label)) return;
  ++rows_;
  const double distance = static_cast<double>(label) - mean_;
  mean_ += distance / static_cast<double>(rows_);
  squares_ += distance * (static_cast<double>(label) - mean_);
  SetDeviation(squares_ / static_cast<double>(rows_));
  if (rows_ < kSettledRows) return;
  moving_ = false;
  rows_ = 0;
  squares_ = 0;
}

// Labels that are all the same say nothing of a scale but their own size.
void Target::SetDeviation(double variance) {
  deviation_ = std::sqrt(variance);
  if (!(deviation_ > 0)) deviation_ = mean_ == 0 ? 1 : std::abs(mean_);
}

void Target::Scale(std::span<float> labels) const {
  if (!scales_) return;
  for (float& label : labels) label = Scaled(label);
}

void Target::Unscale(std::span<float> scores) const {
  if (!scales_) return;
  for (float& score : scores) score = Unscaled(score);
}

namespace {

// As Target::Of, of labels that weigh something: one of weight two is two labels, and one of none is none.
Target OfWeighted(std::vector<std::pair<float, float>> labels) {
  std::erase_if(labels, [](const auto& label) { return !std::isfinite(label.first) || !(label.second > 0); });
  if (labels.empty()) return {};
  std::sort(labels.begin(), labels.end());
  double all = 0;
  for (const auto& [label, weight] : labels) all += weight;
  const double stray = std::floor(all / 1000);
  double passed = 0, mean = 0, squares = 0;
  float least = labels.back().first, most = least;
  for (const auto& [label, weight] : labels) {
    passed += weight;
    if (passed > stray) least = std::min(least, label);
    if (passed >= all - stray) {
      most = label;
      break;
    }
  }
  for (const auto& [label, weight] : labels) mean += weight * std::clamp(label, least, most) / all;
  for (const auto& [label, weight] : labels) squares += weight * std::pow(std::clamp(label, least, most) - mean, 2);
  const double deviation = std::sqrt(squares / all);
  if (deviation > 0) return {mean, deviation};
  return {mean, mean == 0 ? 1 : std::abs(mean)};  // as of labels without weights
}

}  // namespace

Result<Target> EstimateTarget(const RowSource& source) {
  std::vector<float> labels;
  std::vector<std::pair<float, float>> weighted;
  TRY(source.Glimpse([&](const Rows& rows) {
    const auto seen = rows.labels.span();
    labels.insert(labels.end(), seen.begin(), seen.end());
    for (std::size_t r = 0; r < rows.weights.size(); ++r) weighted.emplace_back(rows.labels[r], rows.weights[r]);
  }));
  return weighted.size() == labels.size() ? OfWeighted(std::move(weighted)) : Target::Of(std::move(labels));
}

}  // namespace freshet::data
