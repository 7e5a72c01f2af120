// Matrix factorization by looking up rows, and factorization machines over dense vectors.

#include "model/factorization.h"

#include <algorithm>

#include "model/onnx/export_kinds.h"

namespace freshet::model::onnx {
namespace {

// A table with a row of zeros after its last: what -1, the number of somebody never seen, finds.
std::string TableOf(Builder& builder, const optimize::Parameters& parameters, std::size_t b) {
  std::vector<float> values = parameters.Gather(b);
  const auto rows = static_cast<std::int64_t>(parameters.rows(b)),
             width = static_cast<std::int64_t>(parameters.width(b));
  values.resize(values.size() + static_cast<std::size_t>(width));
  return builder.Floats(parameters.block(b).name, {rows + 1, width}, std::move(values));
}

}  // namespace

Result<void> AddFactorization(Builder& builder, const TrainedModel& trained, const ExportOptions&) {
  const optimize::Parameters& parameters = trained.parameters;
  const std::string user = builder.Input("user", Type::kInt64, {}), item = builder.Input("item", Type::kInt64, {});
  const auto found = [&](std::size_t b, const std::string& who, std::string_view name) {
    return builder.Node("Gather", {TableOf(builder, parameters, b), who}, {IntAttribute("axis", 0)}, name);
  };
  const std::string product = builder.Node("Mul", {found(Factorization::kUserFactors, user, "user_factors"),
                                                   found(Factorization::kItemFactors, item, "item_factors")});
  const std::string dot =
      builder.Node("ReduceSum", {product, builder.Ints("axes", {1})}, {IntAttribute("keepdims", 1)});
  const std::string biases = builder.Node(
      "Add", {found(Factorization::kUserBias, user, "user_bias"), found(Factorization::kItemBias, item, "item_bias")});
  const float mean = *parameters.Row(Factorization::kGlobal, 0);
  const std::string known = builder.Node("Add", {biases, builder.Scalar("mean", mean)});
  AddAnswer(builder, trained.model->loss(), trained.description.target, builder.Node("Add", {dot, known}), {1}, false);
  return {};
}

Result<void> AddFactorizationMachine(Builder& builder, const TrainedModel& trained, const ExportOptions&) {
  constexpr std::size_t kBias = 0, kWeights = 1, kFactors = 2;
  const optimize::Parameters& parameters = trained.parameters;
  const auto features = static_cast<std::int64_t>(parameters.rows(kFactors)),
             factors = static_cast<std::int64_t>(parameters.width(kFactors));
  if (features == 0) return Error{Code::kInvalid, "the model has no features yet; train it first"};
  std::vector<float> squares(static_cast<std::size_t>(features));
  for (std::size_t i = 0; i < squares.size(); ++i) {
    const float* const v = parameters.Row(kFactors, i);
    for (std::int64_t f = 0; f < factors; ++f) squares[i] += v[f] * v[f];
  }
  const std::string x = TRY(AddInput(builder, trained.description, {features}));
  const std::string linear = builder.Node(
      "Gemm", {x, builder.Block(parameters, kWeights, {features, 1}), builder.Block(parameters, kBias, {1})}, {},
      "linear");
  const std::string sums = builder.Node("MatMul", {x, builder.Block(parameters, kFactors, {features, factors})});
  const std::string all = builder.Node("ReduceSum", {builder.Node("Mul", {sums, sums}), builder.Ints("axes", {1})},
                                       {IntAttribute("keepdims", 1)});
  const std::string own = builder.Node(
      "MatMul", {builder.Node("Mul", {x, x}), builder.Floats("factors.squares", {features, 1}, std::move(squares))});
  const std::string pairs =
      builder.Node("Mul", {builder.Node("Sub", {all, own}), builder.Scalar("half", 0.5f)}, {}, "pairs");
  AddAnswer(builder, trained.model->loss(), trained.description.target, builder.Node("Add", {linear, pairs}), {1},
            true);
  return {};
}

}  // namespace freshet::model::onnx
