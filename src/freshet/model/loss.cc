#include "model/loss.h"

namespace freshet::model {

extern const Loss& kLogisticLoss;
extern const Loss& kHingeLoss;
extern const Loss& kSquaredLoss;
extern const Loss& kSoftmaxLoss;

namespace {

std::vector<const Loss*> Registry() { return {&kLogisticLoss, &kHingeLoss, &kSquaredLoss, &kSoftmaxLoss}; }

}  // namespace

std::vector<std::string> LossNames() {
  std::vector<std::string> names;
  for (const Loss* loss : Registry()) names.emplace_back(loss->name());
  return names;
}

Result<const Loss*> FindLoss(std::string_view name) {
  for (const Loss* loss : Registry())
    if (loss->name() == name) return loss;
  return Error{Code::kInvalid, Str("loss ", Quoted(name), ": expected one of ", Join(LossNames(), ", "))};
}

std::string_view DefaultLoss(data::Labels::Kind task) {
  switch (task) {
    case data::Labels::Kind::kBinary:
      return "logistic";
    case data::Labels::Kind::kClasses:
      return "softmax";
    default:
      return "squared";
  }
}

}  // namespace freshet::model
