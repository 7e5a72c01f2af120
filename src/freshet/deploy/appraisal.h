#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "data/labels.h"
#include "deploy/chronicle.h"
#include "deploy/class_quality.h"

namespace freshet::deploy {

// How good the predictions of a deployment that serves are and were, for those who look at it: figures by class, where
// it is a classifier, and a chronicle.
//
// Threads:   figures and points from any; the rest belongs to one thread, the writer's. One lock guards all of it, also
//            where the writer reads what nobody else changes: it does so once in a while, or once a block of rows.
// Blocking:  for the figures that another asks for, which take tens of microseconds.
class Appraisal {
 public:
  // Rows are counted by class from now on. `probabilities`: whether the loss gives some (ClassQuality).
  void CountClasses(bool probabilities) EXCLUDES(mutex_);
  // The names that figures call classes by, once there are other ones than before; until then they are numbers.
  void NameClasses(const data::Labels& labels) EXCLUDES(mutex_);

  // For Judge: held over a block of rows, others see all of it or nothing.
  base::Mutex& mutex() const RETURNS_MUTEX(mutex_) { return mutex_; }
  // Counts a row, if rows are counted by class: the scores it was predicted to have, its label, the derivatives of its
  // loss by the scores, which are overwritten, and its loss.
  void Judge(std::span<const float> scores, float label, std::span<float> deltas, double loss) REQUIRES(mutex_);

  // See Chronicle.
  bool Due(std::int64_t time) const EXCLUDES(mutex_);
  std::int64_t Plausible(std::int64_t time, std::int64_t now) const EXCLUDES(mutex_);
  // Adds a point that is due, with what the classes tell of its log_loss and auc.
  void Mark(Chronicle::Point point) EXCLUDES(mutex_);

  // By window; none where rows are not counted by class.
  std::vector<ClassFigures> figures() const EXCLUDES(mutex_);
  // How it did up to now, oldest first.
  std::vector<Chronicle::Point> points() const EXCLUDES(mutex_);

  // Adds what it knows to a version's vitals, and back. What cannot be read begins anew, since no model is worse for
  // it; Load may throw what the JSON library throws.
  void Save(nlohmann::ordered_json& vitals) const EXCLUDES(mutex_);
  void Load(const nlohmann::ordered_json& vitals) EXCLUDES(mutex_);

 private:
  mutable base::Mutex mutex_;
  std::optional<ClassQuality> classes_ GUARDED_BY(mutex_);
  std::vector<std::string> names_ GUARDED_BY(mutex_);
  Chronicle chronicle_ GUARDED_BY(mutex_);
};

}  // namespace freshet::deploy
