#include "deploy/appraisal.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/str.h"

namespace freshet::deploy {

void Appraisal::CountClasses(bool probabilities) {
  const base::Lock lock(mutex_);
  classes_.emplace(probabilities);
}

void Appraisal::NameClasses(const data::Labels& labels) {
  const base::Lock lock(mutex_);
  if (!classes_ || (!names_.empty() && names_.size() == labels.names.size())) return;
  names_ = labels.positive.empty() ? labels.names : std::vector<std::string>{"the rest", labels.positive};
}

// What the loss has told of its derivatives is the probability of each class, less one for the class that it was.
void Appraisal::Judge(std::span<const float> scores, float label, std::span<float> deltas, double loss) {
  if (!classes_) return;
  const auto truth = static_cast<std::size_t>(label);
  if (!classes_->probabilities())
    deltas[0] = 1 / (1 + std::exp(-scores[0]));  // any number that rises with the score ranks as it does
  else if (deltas.size() == 1)
    deltas[0] += truth == 1 ? 1 : 0;
  else
    deltas[truth] += 1;
  classes_->Add(deltas, truth, loss);
}

bool Appraisal::Due(std::int64_t time) const {
  const base::Lock lock(mutex_);
  return chronicle_.Due(time);
}

std::int64_t Appraisal::Plausible(std::int64_t time, std::int64_t now) const {
  const base::Lock lock(mutex_);
  return chronicle_.Plausible(time, now);
}

void Appraisal::Mark(Chronicle::Point point) {
  const base::Lock lock(mutex_);
  const auto figures = classes_ ? classes_->Figures() : std::vector<ClassFigures>();
  point.log_loss = figures.empty() ? -1 : figures[0].log_loss.value_or(-1);
  point.auc = figures.empty() ? -1 : figures[0].auc.value_or(-1);
  chronicle_.Mark(point);
}

std::vector<ClassFigures> Appraisal::figures() const {
  const base::Lock lock(mutex_);
  if (!classes_) return {};
  auto all = classes_->Figures();
  for (ClassFigures& figures : all)
    for (std::size_t k = 0; k < figures.classes.size(); ++k)
      figures.classes[k].name = k < names_.size() ? names_[k] : Str(k);
  return all;
}

std::vector<Chronicle::Point> Appraisal::points() const {
  const base::Lock lock(mutex_);
  return {chronicle_.points().begin(), chronicle_.points().end()};
}

void Appraisal::Save(nlohmann::ordered_json& vitals) const {
  const base::Lock lock(mutex_);
  if (classes_) vitals["classes"] = classes_->Save();
  if (!chronicle_.points().empty()) vitals["chronicle"] = chronicle_.Save();
}

void Appraisal::Load(const nlohmann::ordered_json& vitals) {
  const base::Lock lock(mutex_);
  if (classes_ && vitals.contains("classes")) (void)classes_->Load(vitals.at("classes"));
  if (vitals.contains("chronicle"))
    (void)chronicle_.Load(vitals.at("chronicle").get<std::vector<std::vector<double>>>());
}

}  // namespace freshet::deploy
