#include <algorithm>

#include "model/loss.h"

namespace freshet::model {
namespace {

// max(0, 1 - m) for the margin m = ±score.
class HingeLoss final : public Loss {
 public:
  std::string_view name() const override { return "hinge"; }
  data::Labels::Kind task() const override { return data::Labels::Kind::kBinary; }
  double Evaluate(std::span<const float> scores, float label, std::span<float> deltas) const override {
    const float sign = label > 0 ? 1.0f : -1.0f;
    const float short_of = 1.0f - sign * scores[0];
    deltas[0] = short_of > 0 ? -sign : 0.0f;
    return std::max(0.0f, short_of);
  }
  void Link(std::span<float>) const override {}
};

const HingeLoss kLoss;

}  // namespace

extern const Loss& kHingeLoss;
const Loss& kHingeLoss = kLoss;

}  // namespace freshet::model
