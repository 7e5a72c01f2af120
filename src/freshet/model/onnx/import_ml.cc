// Operators of ai.onnx.ml: linear models as scikit-learn's are exported, and what stands around them.

#include <algorithm>

#include "model/onnx/import_graph.h"

namespace freshet::model::onnx {

using network::Op;
using network::Shape;

namespace {

std::vector<float> FloatsOf(const Node& node, std::string_view name) {
  const Attribute* const found = node.Find(name);
  return found == nullptr ? std::vector<float>() : found->floats;
}

}  // namespace

void ImportGraph::TakeLabels(std::string_view ints, std::string_view strings) {
  std::vector<std::string> names;
  if (const Attribute* const found = node_->Find(strings); found != nullptr) names = found->strings;
  if (const Attribute* const found = node_->Find(ints); found != nullptr && names.empty())
    for (const std::int64_t label : found->ints) names.push_back(Str(label));
  if (!names.empty()) labels = std::move(names);
}

Result<void> ImportGraph::LinearClassifier() {
  if (node_->outputs.size() < 2 || node_->outputs[1].empty() || readers_.contains(node_->outputs[0]))
    return Wrong("the class it names is used; only its scores, its second output, are known here");
  const Seen x = TRY(In());
  std::vector<float> weight = FloatsOf(*node_, "coefficients"), bias = FloatsOf(*node_, "intercepts");
  const auto features = static_cast<std::size_t>(facts[static_cast<std::size_t>(x.layer)].elements());
  if (x.dims.size() != 2 || weight.empty() || weight.size() % features != 0)
    return Wrong(Str(weight.size(), " coefficients for ", features, " features"));
  std::size_t rows = weight.size() / features;
  bias.resize(std::max(bias.size(), rows), 0.0f);
  if (bias.size() != rows) return Wrong(Str(bias.size(), " intercepts for ", rows, " rows of coefficients"));
  TakeLabels("classlabels_ints", "classlabels_strings");
  const std::string transform = Text("post_transform", "NONE");
  if (transform != "NONE" && transform != "SOFTMAX" && transform != "LOGISTIC")
    return Wrong(Str("post_transform ", Quoted(transform), "; expected NONE, SOFTMAX or LOGISTIC"));
  // Of two classes, each score the other's opposite: the second says it all.
  const auto half = static_cast<std::ptrdiff_t>(features);
  const bool opposite = rows == 2 && bias[0] == -bias[1] &&
                        std::equal(weight.begin(), weight.begin() + half, weight.begin() + half,
                                   [](float a, float b) { return a == -b; });
  if (opposite && transform != "SOFTMAX") {
    weight.erase(weight.begin(), weight.begin() + half);
    bias.erase(bias.begin());
    rows = 1;
  }
  if (labels.size() != (rows == 1 ? 2 : rows))
    return Wrong(Str(labels.size(), " class labels for ", rows, " rows of coefficients"));
  Seen made = TRY(Dense(x, std::move(weight), static_cast<std::int64_t>(rows)));
  graph.layers[static_cast<std::size_t>(made.layer)].bias = true;
  TRY(Keep(made.layer, "bias", std::move(bias)));
  if (transform != "NONE") {
    const Op op = transform == "SOFTMAX" ? Op::kSoftmax : Op::kSigmoid;
    made.layer = TRY(Put({.op = op, .inputs = {made.layer}}, "link"));
  }
  Give(std::move(made), 1);
  return {};
}

Result<void> ImportGraph::LinearRegressor() {
  const Seen x = TRY(In());
  std::vector<float> weight = FloatsOf(*node_, "coefficients"), bias = FloatsOf(*node_, "intercepts");
  const std::int64_t targets = TRY(Int("targets", 1));
  const std::int64_t features = facts[static_cast<std::size_t>(x.layer)].elements();
  if (targets < 1 || targets > std::ssize(weight) || x.dims.size() != 2 || std::ssize(weight) != targets * features)
    return Wrong(Str(weight.size(), " coefficients for ", features, " features and ", targets, " targets"));
  if (Text("post_transform", "NONE") != "NONE") return Wrong("a post_transform is not known here");
  bias.resize(std::max(bias.size(), static_cast<std::size_t>(targets)), 0.0f);
  if (std::ssize(bias) != targets) return Wrong(Str(bias.size(), " intercepts for ", targets, " targets"));
  Seen made = TRY(Dense(x, std::move(weight), targets));
  graph.layers[static_cast<std::size_t>(made.layer)].bias = true;
  TRY(Keep(made.layer, "bias", std::move(bias)));
  Give(std::move(made));
  return {};
}

// (x - offset) · scale.
Result<void> ImportGraph::Scaler() {
  const Seen x = TRY(In());
  std::vector<float> offset = FloatsOf(*node_, "offset"), by = FloatsOf(*node_, "scale");
  const std::int64_t features = x.row().back();
  const auto fits = [&](const std::vector<float>& values) {
    return values.empty() || values.size() == 1 || std::ssize(values) == features;
  };
  if (x.dims.size() != 2 || !fits(offset) || !fits(by))
    return Wrong(Str(offset.size(), " offsets and ", by.size(), " scales for ", features, " features"));
  const std::size_t numbers = std::max({offset.size(), by.size(), std::size_t{1}});
  by.resize(numbers, by.empty() ? 1.0f : by[0]);
  offset.resize(numbers, offset.empty() ? 0.0f : offset[0]);
  for (std::size_t i = 0; i < numbers; ++i) offset[i] = -offset[i] * by[i];
  Shape pattern = x.row();
  if (numbers == 1) pattern = Shape(pattern.size(), 1);
  Give(TRY(Affine(x, pattern, std::move(by), std::move(offset))));
  return {};
}

// What softmax gives has the sum 1 already.
Result<void> ImportGraph::Normalizer() {
  const Seen x = TRY(In());
  if (Text("norm", "MAX") != "L1" || graph.layers[static_cast<std::size_t>(x.layer)].op != Op::kSoftmax)
    return Wrong("known here only as L1 behind a softmax, where it changes nothing");
  return Alias();
}

Result<void> ImportGraph::ZipMap() {
  TakeLabels("classlabels_int64s", "classlabels_strings");
  return Alias();
}

}  // namespace freshet::model::onnx
