// K scores of D features: x · Wᵀ + b.

#include "model/onnx/export_kinds.h"

namespace freshet::model::onnx {
namespace {

constexpr std::size_t kWeights = 0, kBias = 1;

// The weights with a row for each score, as ai.onnx.ml wants them.
std::vector<float> ByScore(const optimize::Parameters& parameters, bool dense, std::size_t scores) {
  std::vector<float> weights = parameters.Gather(kWeights);
  if (dense || scores == 1) return weights;
  const std::size_t features = weights.size() / scores;
  std::vector<float> turned(weights.size());
  for (std::size_t j = 0; j < features; ++j)
    for (std::size_t k = 0; k < scores; ++k) turned[k * features + j] = weights[j * scores + k];
  return turned;
}

// Two classes are two scores there, each the other's negative.
std::vector<float> WithNegative(const std::vector<float>& values) {
  std::vector<float> both;
  for (const float value : values) both.push_back(-value);
  both.insert(both.end(), values.begin(), values.end());
  return both;
}

// Class names where they are known for every class, else numbers.
Attribute ClassLabels(const data::Labels& labels, std::size_t classes) {
  if (labels.names.size() == classes && labels.positive.empty())
    return StringsAttribute("classlabels_strings", labels.names);
  std::vector<std::int64_t> numbers(classes);
  for (std::size_t k = 0; k < classes; ++k) numbers[k] = static_cast<std::int64_t>(k);
  return IntsAttribute("classlabels_ints", std::move(numbers));
}

void AddMl(Builder& builder, const TrainedModel& trained, const std::string& input) {
  const ModelConfig& config = trained.model->config();
  const std::string_view loss = trained.model->loss().name();
  const auto scores = static_cast<std::size_t>(config.classes);
  std::vector<float> weights = ByScore(trained.parameters, config.dense, scores);
  std::vector<float> bias = trained.parameters.Gather(kBias);
  builder.document().ml_opset = 1;
  if (trained.model->loss().task() == data::Labels::Kind::kReal) {
    const data::Target& target = trained.description.target;
    for (float& weight : weights) weight = static_cast<float>(weight * target.deviation());
    target.Unscale(bias);
    const auto outputs = builder.Nodes("LinearRegressor", {input}, {"prediction"},
                                       {FloatsAttribute("coefficients", std::move(weights)),
                                        FloatsAttribute("intercepts", std::move(bias)), IntAttribute("targets", 1)},
                                       "linear", "ai.onnx.ml");
    builder.Output(outputs[0], Type::kFloat, {1});
    return;
  }
  const bool two = trained.model->loss().task() == data::Labels::Kind::kBinary;
  const std::size_t classes = two ? 2 : scores;
  const Attribute labels = ClassLabels(trained.description.labels, classes);
  const auto outputs =
      builder.Nodes("LinearClassifier", {input}, {"label", loss == "hinge" ? "scores" : "probabilities"},
                    {FloatsAttribute("coefficients", two ? WithNegative(weights) : std::move(weights)),
                     FloatsAttribute("intercepts", two ? WithNegative(bias) : std::move(bias)), labels,
                     StringAttribute("post_transform", loss == "logistic" ? "LOGISTIC" : (two ? "NONE" : "SOFTMAX"))},
                    "linear", "ai.onnx.ml");
  builder.Output(outputs[0], labels.kind == Attribute::Kind::kStrings ? Type::kString : Type::kInt64, {});
  builder.Output(outputs[1], Type::kFloat, {static_cast<std::int64_t>(classes)});
}

}  // namespace

Result<void> AddLinear(Builder& builder, const TrainedModel& trained, const ExportOptions& options) {
  const ModelConfig& config = trained.model->config();
  const auto scores = static_cast<std::int64_t>(config.classes);
  const auto features = static_cast<std::int64_t>(config.dense ? config.features : trained.parameters.rows(kWeights));
  if (features == 0) return Error{Code::kInvalid, "the model has no features yet; train it first"};
  const std::string input = TRY(AddInput(builder, trained.description, {features}));
  if (options.ml) {
    AddMl(builder, trained, input);
    return {};
  }
  const std::string weights = builder.Block(
      trained.parameters, kWeights,
      config.dense ? std::vector<std::int64_t>{scores, features} : std::vector<std::int64_t>{features, scores});
  const std::string bias = builder.Block(trained.parameters, kBias, {scores});
  const std::string sums =
      builder.Node("Gemm", {input, weights, bias}, {IntAttribute("transB", config.dense ? 1 : 0)}, "linear");
  AddAnswer(builder, trained.model->loss(), trained.description.target, sums, {scores}, true);
  return {};
}

}  // namespace freshet::model::onnx
