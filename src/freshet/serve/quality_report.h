#pragma once

#include <string>
#include <vector>

#include "base/metrics.h"
#include "deploy/class_quality.h"

namespace freshet::serve {

// How good a classifier is, as JSON: an array of an object for each window. Of many classes those that come most often
// are told, up to kMostClasses.
inline constexpr std::size_t kMostClasses = 50;
std::string FiguresJson(const std::vector<deploy::ClassFigures>& all);

// The same for dashboards; each class alone where there are few. Classes that come later get their gauges then.
//
// Threads: one at a time. Ownership: borrows the registry.
class QualityGauges {
 public:
  QualityGauges(base::Metrics& metrics, const std::string& model);
  void Set(const std::vector<deploy::ClassFigures>& all);

 private:
  base::Metrics& metrics_;
  const std::string label_;  // model="…"
};

}  // namespace freshet::serve
