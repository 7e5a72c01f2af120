// How good a deployment is and was, for those who look at it.

#include <cmath>

#include "deploy/deployment_parts.h"

namespace freshet::deploy {

// What the loss has told of its derivatives is the probability of each class, less one for the class that it was.
void Deployment::Judge(std::span<const float> scores, float label, std::span<float> deltas, double loss) {
  const auto truth = static_cast<std::size_t>(label);
  if (!class_quality_->probabilities())
    deltas[0] = 1 / (1 + std::exp(-scores[0]));  // any number that rises with the score ranks as it does
  else if (deltas.size() == 1)
    deltas[0] += truth == 1 ? 1 : 0;
  else
    deltas[truth] += 1;
  class_quality_->Add(deltas, truth, loss);
}

// As the description has them, which is the writer's alone.
void Deployment::NameClasses() {
  const data::Labels& labels = models_->description().labels;
  if (!class_quality_ || (!class_names_.empty() && class_names_.size() == labels.names.size())) return;
  const base::Lock lock(judged_mutex_);
  class_names_ = labels.positive.empty() ? labels.names : std::vector<std::string>{"the rest", labels.positive};
}

// Where it serves: notes down how it is doing, once in a while.
void Deployment::Remember(std::int64_t time) {
  if (doors_.readers == 0 || !chronicle_.Due(time)) return;
  Chronicle::Point point;
  point.time = time;
  point.rows = quality_.rows;
  point.errors = quality_.sum;
  point.recent = quality_.recent;
  const auto figures = class_quality_ ? class_quality_->Figures() : std::vector<ClassFigures>();
  point.log_loss = figures.empty() ? -1 : figures[0].log_loss.value_or(-1);
  point.auc = figures.empty() ? -1 : figures[0].auc.value_or(-1);
  point.observations = data_->end();
  point.iterations = iterations_;
  if (versions_ != nullptr)
    if (const auto kept = versions_->list(); !kept.empty()) point.kept = kept.back().id;
  {
    const base::Lock lock(stats_mutex_);
    point.drifts = stats_.drifts;
    point.roll_backs = stats_.roll_backs;
  }
  const base::Lock lock(judged_mutex_);
  chronicle_.Mark(point);
}

std::vector<ClassFigures> Deployment::class_figures() const {
  const base::Lock lock(judged_mutex_);
  if (!class_quality_) return {};
  auto all = class_quality_->Figures();
  for (ClassFigures& figures : all)
    for (std::size_t k = 0; k < figures.classes.size(); ++k)
      figures.classes[k].name = k < class_names_.size() ? class_names_[k] : Str(k);
  return all;
}

std::vector<Chronicle::Point> Deployment::chronicle() const {
  const base::Lock lock(judged_mutex_);
  return {chronicle_.points().begin(), chronicle_.points().end()};
}

// What training waits for, in words.
std::string Deployment::SchedulerText() const {
  if (options_.method == Method::kContinuous) return scheduler_.StateText();
  if (options_.method != Method::kVelox) return Str("method ", Name(options_.method), " runs no iterations");
  if (job_ != nullptr) return "retraining";
  if (options_.retrain_rows > 0)
    return Str("waiting for data: ", since_retraining_, " of ", options_.retrain_rows,
               " rows have come since the last retraining");
  if (options_.retrain_error > 0) return "waiting for the error to rise";
  return "waiting to be asked to retrain";
}

}  // namespace freshet::deploy
