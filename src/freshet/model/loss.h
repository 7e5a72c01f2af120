#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "data/labels.h"

namespace freshet::model {

// How wrong scores are, given a label. Two-class labels are 0 and 1, classes 0 … K-1, others real numbers.
// Stateless; any thread.
class Loss {
 public:
  virtual ~Loss() = default;
  virtual std::string_view name() const = 0;
  virtual data::Labels::Kind task() const = 0;
  // The loss, and its derivative by each score into `deltas`.
  virtual double Evaluate(std::span<const float> scores, float label, std::span<float> deltas) const = 0;
  // Turns scores into what a user wants to see, in place: a probability, probabilities, a value.
  virtual void Link(std::span<float> scores) const = 0;
};

// A loss is a file of its own and a line in the registry of loss.cc.
Result<const Loss*> FindLoss(std::string_view name);
std::vector<std::string> LossNames();
// The customary loss of a task.
std::string_view DefaultLoss(data::Labels::Kind task);

}  // namespace freshet::model
