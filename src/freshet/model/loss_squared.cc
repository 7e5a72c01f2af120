#include "model/loss.h"

namespace freshet::model {
namespace {

// (score - label)² / 2, so that the derivative is the error itself.
class SquaredLoss final : public Loss {
 public:
  std::string_view name() const override { return "squared"; }
  data::Labels::Kind task() const override { return data::Labels::Kind::kReal; }
  double Evaluate(std::span<const float> scores, float label, std::span<float> deltas) const override {
    const float error = scores[0] - label;
    deltas[0] = error;
    return 0.5 * error * error;
  }
  void Link(std::span<float>) const override {}
};

const SquaredLoss kLoss;

}  // namespace

extern const Loss& kSquaredLoss;
const Loss& kSquaredLoss = kLoss;

}  // namespace freshet::model
