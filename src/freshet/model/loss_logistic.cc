#include <algorithm>
#include <cmath>

#include "model/loss.h"

namespace freshet::model {
namespace {

// log(1 + exp(-m)) for the margin m = ±score. One exponential serves the loss and its derivative.
class LogisticLoss final : public Loss {
 public:
  std::string_view name() const override { return "logistic"; }
  data::Labels::Kind task() const override { return data::Labels::Kind::kBinary; }
  double Evaluate(std::span<const float> scores, float label, std::span<float> deltas) const override {
    const float sign = label > 0 ? 1.0f : -1.0f;
    const float margin = sign * scores[0];
    const float e = std::exp(-std::abs(margin));
    deltas[0] = -sign * (margin > 0 ? e : 1.0f) / (1.0f + e);
    return std::max(0.0f, -margin) + std::log1p(e);
  }
  void Link(std::span<float> scores) const override { scores[0] = 1.0f / (1.0f + std::exp(-scores[0])); }
};

const LogisticLoss kLoss;

}  // namespace

extern const Loss& kLogisticLoss;
const Loss& kLogisticLoss = kLoss;

}  // namespace freshet::model
