#include <algorithm>
#include <cmath>

#include "model/loss.h"

namespace freshet::model {
namespace {

// The cross-entropy of softmax(scores) and the class `label`.
class SoftmaxLoss final : public Loss {
 public:
  std::string_view name() const override { return "softmax"; }
  data::Labels::Kind task() const override { return data::Labels::Kind::kClasses; }
  double Evaluate(std::span<const float> scores, float label, std::span<float> deltas) const override {
    std::copy(scores.begin(), scores.end(), deltas.begin());
    const auto truth = static_cast<std::size_t>(label);
    const float shifted = scores[truth] - *std::max_element(scores.begin(), scores.end());
    const double sum = Exponentiate(deltas);
    for (float& delta : deltas) delta = static_cast<float>(delta / sum);
    deltas[truth] -= 1.0f;
    return std::log(sum) - shifted;
  }
  void Link(std::span<float> scores) const override {
    const double sum = Exponentiate(scores);
    for (float& score : scores) score = static_cast<float>(score / sum);
  }

 private:
  // exp(s - max s) in place; returns the sum.
  static double Exponentiate(std::span<float> scores) {
    const float top = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (float& score : scores) sum += score = std::exp(score - top);
    return sum;
  }
};

const SoftmaxLoss kLoss;

}  // namespace

extern const Loss& kSoftmaxLoss;
const Loss& kSoftmaxLoss = kLoss;

}  // namespace freshet::model
