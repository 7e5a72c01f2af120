#include "deploy/class_quality.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace freshet::deploy {
namespace {

using Json = nlohmann::json;

std::optional<double> Share(double part, double whole) {
  if (!(whole > 0)) return std::nullopt;
  return part / whole;
}

}  // namespace

// The exponent and five bits of the fraction of p, or of 1 - p above one half: no logarithm is needed.
std::size_t ClassQuality::BinOf(float probability) {
  constexpr float kLeast = 0x1p-16f;
  const auto place = [](float p) { return std::bit_cast<std::uint32_t>(p) >> 18; };
  const bool high = probability >= 0.5f;
  const float small = std::clamp(high ? 1 - probability : probability, kLeast, 0.5f);
  const std::size_t at = place(small) - place(kLeast);  // up to 480
  return high ? kBins - 1 - at : at;
}

void ClassQuality::Add(std::span<const float> predicted, std::size_t label, double loss) {
  bool finite = std::isfinite(loss) || !probabilities_;
  for (const float p : predicted) finite = finite && std::isfinite(p);
  const std::size_t classes = predicted.size() == 1 ? 2 : predicted.size();
  if (!finite || label >= classes) return;
  bins_.clear();
  if (classes <= kMostRanked)
    for (const float p : predicted) bins_.push_back(BinOf(p));
  for (std::size_t w = 0; w < windows_.size(); ++w) AddTo(windows_[w], kWindows[w], predicted, label, loss);
}

void ClassQuality::AddTo(Window& window, double rows, std::span<const float> predicted, std::size_t label,
                         double loss) {
  const bool two = predicted.size() == 1;
  if (window.counts.size() < (two ? 2 : predicted.size())) window.counts.resize(two ? 2 : predicted.size());
  if (bins_.empty()) window.ranked.clear();
  if (window.ranked.size() < bins_.size()) window.ranked.resize(bins_.size());
  const auto weight = static_cast<float>(window.weight);
  window.rows += window.weight;
  window.loss += window.weight * loss;
  for (std::size_t k = 0; k < bins_.size(); ++k)
    ((two ? label == 1 : label == k) ? window.ranked[k].own : window.ranked[k].others)[bins_[k]] += weight;
  const auto best = static_cast<std::size_t>(std::max_element(predicted.begin(), predicted.end()) - predicted.begin());
  const std::size_t called = two ? (predicted[0] > 0.5f ? 1 : 0) : best;
  window.counts[label].own += weight;
  window.counts[called].called += weight;
  if (called == label) window.counts[label].both += weight;
  const float p = predicted[best];
  const auto bin = std::min(kCalibrationBins - 1, static_cast<std::size_t>(std::max(0.0f, p) * kCalibrationBins));
  auto& sums = window.calibration[bin];
  sums[0] += weight;
  sums[1] += weight * p;
  if (two ? label == 1 : called == label) sums[2] += weight;
  window.weight /= 1 - 1 / rows;  // the next one counts more, which is as if all before counted less
  constexpr double kLarge = 1e12;
  if (window.weight > kLarge) Rescale(window, 1 / window.weight);
}

// Every sum of weights, in an order that does not change.
template <class Each>
void ClassQuality::ForEachSum(Window& window, const Each& each) {
  for (Counts& counts : window.counts)
    for (float* const sum : {&counts.own, &counts.called, &counts.both}) each(*sum);
  for (auto& bin : window.calibration)
    for (float& sum : bin) each(sum);
  for (Ranked& ranked : window.ranked)
    for (auto* const side : {&ranked.own, &ranked.others})
      for (float& sum : *side) each(sum);
}

void ClassQuality::Rescale(Window& window, double by) {
  ForEachSum(window, [&](float& sum) { sum = static_cast<float>(sum * by); });
  for (double* const sum : {&window.weight, &window.rows, &window.loss}) *sum *= by;
}

// The chance that a row of the class was given more than one of the others; those in one bin are even.
std::optional<double> ClassQuality::AreaUnder(const Ranked& ranked) {
  double own = 0, others = 0, area = 0;
  for (std::size_t b = 0; b < kBins; ++b) {
    area += ranked.own[b] * (others + 0.5 * ranked.others[b]);
    own += ranked.own[b];
    others += ranked.others[b];
  }
  return own > 0 && others > 0 ? std::optional(area / (own * others)) : std::nullopt;
}

ClassFigures ClassQuality::FiguresOf(const Window& window, double rows) const {
  ClassFigures figures;
  figures.window = rows;
  figures.rows = window.rows / (window.weight * (1 - 1 / rows));  // the newest counts one
  const bool two = window.counts.size() == 2 && window.ranked.size() == 1;
  double areas = 0, told = 0;
  for (std::size_t k = 0; k < window.counts.size(); ++k) {
    const Counts& counts = window.counts[k];
    ClassFigures::OfClass& of = figures.classes.emplace_back();
    of.share = counts.own / window.rows;
    of.precision = Share(counts.both, counts.called);
    of.recall = Share(counts.both, counts.own);
    if (!window.ranked.empty()) of.auc = AreaUnder(window.ranked[two ? 0 : k]);
    if (of.auc) areas += *of.auc, ++told;
  }
  figures.auc = Share(areas, told);
  if (!probabilities_) return figures;
  figures.log_loss = window.loss / window.rows;
  double distance = 0;
  for (const auto& [count, sum, came] : window.calibration) {
    if (!(count > 0)) continue;
    figures.calibration.push_back({sum / count, came / count, count / window.rows});
    distance += std::abs(sum - came);
  }
  figures.calibration_error = distance / window.rows;
  return figures;
}

std::vector<ClassFigures> ClassQuality::Figures() const {
  std::vector<ClassFigures> all;
  for (std::size_t w = 0; w < std::size(kWindows); ++w)
    if (windows_[w].rows > 0) all.push_back(FiguresOf(windows_[w], kWindows[w]));
  return all;
}

// To the last bit, since a restart must not change what was said. Sums are the bits of floats as whole numbers; most
// bins are empty, and a negative number stands for so many zeros.
std::string ClassQuality::Save() const {
  Json json = Json::array();
  for (Window window : windows_) {
    std::vector<std::int64_t> sums;
    ForEachSum(window, [&](const float& sum) {
      if (sum > 0)
        sums.push_back(std::bit_cast<std::uint32_t>(sum));
      else if (!sums.empty() && sums.back() < 0)
        --sums.back();
      else
        sums.push_back(-1);
    });
    json.push_back({{"weight", window.weight},
                    {"rows", window.rows},
                    {"loss", window.loss},
                    {"classes", window.counts.size()},
                    {"ranked", window.ranked.size()},
                    {"sums", sums}});
  }
  return json.dump();
}

bool ClassQuality::Load(const std::string& text) try {
  constexpr std::size_t kMostClasses = 1 << 20;
  const Json json = Json::parse(text);
  std::array<Window, 2> loaded;
  if (json.size() != loaded.size()) return false;
  for (std::size_t w = 0; w < loaded.size(); ++w) {
    Window& window = loaded[w];
    window.weight = json.at(w).at("weight");
    window.rows = json.at(w).at("rows");
    window.loss = json.at(w).at("loss");
    const std::size_t classes = json.at(w).at("classes"), ranked = json.at(w).at("ranked");
    if (classes > kMostClasses || ranked > std::min(classes, kMostRanked) || !(window.weight > 0)) return false;
    window.counts.resize(classes);
    window.ranked.resize(ranked);
    std::size_t expected = 0;
    ForEachSum(window, [&](const float&) { ++expected; });
    std::vector<float> sums;
    for (const std::int64_t sum : json.at(w).at("sums").get<std::vector<std::int64_t>>()) {
      const std::uint64_t more = sum > 0 ? 1 : 0 - static_cast<std::uint64_t>(sum);
      if (more > expected - sums.size() || sum > std::numeric_limits<std::uint32_t>::max()) return false;
      const float value = sum > 0 ? std::bit_cast<float>(static_cast<std::uint32_t>(sum)) : 0;
      if (!(value >= 0 && std::isfinite(value))) return false;
      sums.resize(sums.size() + more, value);
    }
    if (sums.size() != expected) return false;
    auto next = sums.begin();
    ForEachSum(window, [&](float& sum) { sum = *next++; });
  }
  windows_ = std::move(loaded);
  return true;
} catch (const Json::exception&) {
  return false;
}

}  // namespace freshet::deploy
