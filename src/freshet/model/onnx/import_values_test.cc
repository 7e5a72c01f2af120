// What imported networks compute: random networks that go out and come back, and small graphs by hand.

#include <gtest/gtest.h>

#include <cmath>

#include "model/network/graphs_testing.h"
#include "model/network/program.h"
#include "model/onnx/builder.h"
#include "model/onnx/export.h"
#include "model/onnx/import.h"
#include "model/onnx/network_testing.h"
#include "model/onnx/read.h"
#include "model/onnx/write.h"

namespace freshet::model::onnx {
namespace {

using Floats = std::vector<float>;
using network::Op;

Floats Outputs(const network::Graph& graph, const optimize::Parameters& parameters, const Floats& input) {
  const auto facts = network::Infer(graph).value();
  const std::size_t rows = input.size() / static_cast<std::size_t>(facts[0].elements());
  const auto program = network::Program::Compile(graph, {.rows = rows});
  EXPECT_TRUE(program.ok()) << program.error().text;
  const float* const at = input.data();
  program.value()->Forward(parameters, {&at, 1}, {});
  const auto out = program.value()->Output(0);
  return {out.begin(), out.end()};
}

void ExpectNear(const Floats& got, const Floats& want, double close = 1e-5) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], want[i], close * std::max(1.0f, std::abs(want[i]))) << "at " << i;
}

Result<Imported> Back(const Document& document, optimize::Memory& memory, const ImportOptions& options = {}) {
  base::StringFile file;
  TRY(Write(document, file));
  return Import(TRY(Read(file.text)), memory, options);
}

TEST(Import, ComputesWhatTheExportedNetworkDid) {
  optimize::HeapMemory memory;
  std::map<Op, int> met;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    const network::Graph graph = network::RandomGraph(seed).graph();
    const optimize::Parameters parameters = RandomNetwork(seed).Weights(graph, memory);
    const auto document = ExportNetwork(graph, parameters, *FindLoss("squared").value());
    if (!document.ok()) continue;  // windows that cannot be said there
    const auto imported = Back(document.value(), memory);
    ASSERT_TRUE(imported.ok()) << imported.error().text;
    base::Random random(seed, "rows");
    Floats rows;
    for (std::int64_t i = 3 * network::Infer(graph).value()[0].elements(); i > 0; --i)
      rows.push_back(seed % 4 == 3 ? static_cast<float>(random.Below(2)) : static_cast<float>(random.Normal()));
    if (imported.value().view.any()) continue;  // the input's description does a part of it
    Floats scaled = rows;
    for (float& value : scaled) value *= static_cast<float>(imported.value().scale);
    ExpectNear(Outputs(imported.value().graph, imported.value().parameters, scaled), Outputs(graph, parameters, rows),
               1e-4);
    for (const network::Layer& layer : graph.layers) ++met[layer.op];
  }
  for (int op = 1; op <= static_cast<int>(network::kLastOp); ++op)
    EXPECT_GT(met[static_cast<Op>(op)], 0) << network::NameOf(static_cast<Op>(op)) << " was in none of them";
}

// A graph by hand: input [N, …] and whatever is put behind it as "out".
class ByHand {
 public:
  explicit ByHand(std::vector<std::int64_t> dims) : builder_(document) {
    builder_.Input("x", Type::kFloat, std::move(dims));
  }
  Builder* operator->() { return &builder_; }

  Floats Gives(const Floats& rows, const ImportOptions& options = {}) {
    if (document.outputs.empty()) builder_.Output("out", Type::kFloat, {1});
    const auto imported = Back(document, memory_, options);
    EXPECT_TRUE(imported.ok()) << imported.error().text;
    return imported.ok() ? Outputs(imported.value().graph, imported.value().parameters, rows) : Floats();
  }
  std::string Refusal() {
    if (document.outputs.empty()) builder_.Output("out", Type::kFloat, {1});
    const auto imported = Back(document, memory_);
    return imported.ok() ? "it was taken" : imported.error().text;
  }
  Document document;

 private:
  optimize::HeapMemory memory_;
  Builder builder_;
};

void ExpectMentions(const std::string& text, const std::string& piece) {
  EXPECT_NE(text.find(piece), std::string::npos) << "'" << piece << "' is not in: " << text;
}

TEST(Import, FollowsShapesThatExportersCompute) {
  ByHand graph({2, 3});
  graph->Node("Relu", {"x"}, {}, "relu");
  graph->Node("Shape", {"relu"}, {}, "shape");
  graph->Node("Gather", {"shape", graph->Ints("zero", {0})}, {IntAttribute("axis", 0)}, "rows");
  graph->Node("Concat", {"rows", graph->Ints("rest", {-1})}, {IntAttribute("axis", 0)}, "target");
  graph->Node("Reshape", {"relu", "target"}, {}, "flat");
  graph->Node("Transpose", {graph->Floats("w", {1, 6}, {1, 2, 3, 4, 5, 6})}, {IntsAttribute("perm", {1, 0})}, "turned");
  graph->Node("MatMul", {"flat", "turned"}, {}, "out");
  ExpectNear(graph.Gives({1, -1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1}), {10, 21});
}

TEST(Import, MeansAndNormalisesOverAnyDimensionButTheBatch) {
  ByHand steps({2, 3});
  steps->Node("ReduceMean", {"x"}, {IntsAttribute("axes", {1}), IntAttribute("keepdims", 0)}, "out");
  ExpectNear(steps.Gives({1, 2, 3, 5, 6, 7}), {3, 4, 5});
  ByHand features({2, 3});
  features->Node("ReduceMean", {"x"}, {IntsAttribute("axes", {-1})}, "out");
  ExpectNear(features.Gives({1, 2, 3, 5, 6, 7}), {2, 6});
  ByHand softmax({2, 2});
  softmax->Node("Softmax", {"x"}, {IntAttribute("axis", 1)}, "out");
  ExpectNear(softmax.Gives({0, 1, 0, 1}), {0.5f, 0.5f, 0.5f, 0.5f});
  ByHand rows({2, 3});
  rows->Node("ReduceMean", {"x"}, {IntsAttribute("axes", {0})}, "out");
  ExpectMentions(rows.Refusal(), "axis 0 is the batch");
}

TEST(Import, TakesAGraphThatIsOneRow) {
  ByHand graph({});
  graph.document.inputs[0].dims = {2, 3};
  graph->Node("Add", {"x", graph->Floats("c", {2, 3}, {1, 2, 3, 4, 5, 6})}, {}, "sum");
  graph->Node("Gemm", {"sum", graph->Floats("w", {2, 1}, {1, 10})}, {IntAttribute("transA", 1)}, "out");
  ExpectNear(graph.Gives({0, 0, 0, 0, 0, 1}, {.one_row = true}), {41, 52, 73});
  ExpectMentions(graph.Refusal(), "differs from row to row");
}

TEST(Import, PadsByItself) {
  for (const bool upper : {true, false}) {
    ByHand graph({1, 2, 2});
    graph->Node("Conv", {"x", graph->Floats("w", {1, 1, 2, 2}, {1, 10, 100, 1000})},
                {StringAttribute("auto_pad", upper ? "SAME_UPPER" : "SAME_LOWER")}, "out");
    const Floats wanted = upper ? Floats{4321, 402, 43, 4} : Floats{1000, 2100, 3010, 4321};
    ExpectNear(graph.Gives({1, 2, 3, 4}), wanted);
  }
}

TEST(Import, GatesChannels) {
  ByHand graph({2, 1, 2});
  graph->Node("GlobalAveragePool", {"x"}, {}, "pooled");
  graph->Node("Mul", {"x", "pooled"}, {}, "out");
  ExpectNear(graph.Gives({1, 3, 2, 6}), {2, 6, 8, 24});
}

TEST(Import, TakesTheLastStepOfARecurrentLayer) {
  const auto build = [](bool whole) {
    ByHand graph({2, 1});
    graph->Node("Transpose", {"x"}, {IntsAttribute("perm", {1, 0, 2})}, "steps");
    const std::string w = graph->Floats("w", {1, 4, 1}, {1, 2, 3, 4}), r = graph->Floats("r", {1, 4, 1}, {4, 3, 2, 1});
    if (whole) {
      graph->Nodes("LSTM", {"steps", w, r}, {"all"}, {IntAttribute("hidden_size", 1)});
      graph->Node("Squeeze", {"all", graph->Ints("one", {1})}, {}, "squeezed");
      graph->Node("Transpose", {"squeezed"}, {IntsAttribute("perm", {1, 0, 2})}, "rows");
      graph->Node("Gather", {"rows", graph->Ints("last", {-1})}, {IntAttribute("axis", 1)}, "out");
    } else {
      graph->Nodes("LSTM", {"steps", w, r}, {"", "out"}, {IntAttribute("hidden_size", 1)});
    }
    return graph.Gives({0.5f, -0.3f});
  };
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  double cell = 0, state = 0;
  for (const double x : {0.5, -0.3}) {
    cell = sigmoid(3 * x + 2 * state) * cell + sigmoid(x + 4 * state) * std::tanh(4 * x + state);
    state = sigmoid(2 * x + 3 * state) * std::tanh(cell);
  }
  ExpectNear(build(true), {static_cast<float>(state)});
  ExpectNear(build(false), {static_cast<float>(state)});
}

TEST(Import, RefusesDropoutInTrainingMode) {
  ByHand graph({4});
  Tensor yes{.name = "yes", .type = Type::kBool, .dims = {}, .bytes = std::string_view("\1", 1)};
  graph.document.initializers.push_back(yes);
  graph->Node("Dropout", {"x", graph->Scalar("ratio", 0.5f), "yes"}, {}, "out");
  ExpectMentions(graph.Refusal(), "training mode");
}

TEST(Import, TakesLinearModelsOfTheMachineLearningOperators) {
  optimize::HeapMemory memory;
  ByHand graph({2});
  graph.document.ml_opset = 1;
  graph->Nodes("Scaler", {"x"}, {"scaled"}, {FloatsAttribute("offset", {1, 0}), FloatsAttribute("scale", {2, 1})}, "",
               "ai.onnx.ml");
  graph->Nodes("LinearClassifier", {"scaled"}, {"label", "raw"},
               {FloatsAttribute("coefficients", {-1, -2, 1, 2}), FloatsAttribute("intercepts", {-3, 3}),
                StringAttribute("post_transform", "LOGISTIC"), StringsAttribute("classlabels_strings", {"no", "yes"})},
               "", "ai.onnx.ml");
  graph->Nodes("ZipMap", {"raw"}, {"maps"}, {StringsAttribute("classlabels_strings", {"no", "yes"})}, "", "ai.onnx.ml");
  graph.document.outputs = {{"label", Type::kString, {-1}}, {"maps", Type::kNone, {}}};
  const auto imported = Back(graph.document, memory);
  ASSERT_TRUE(imported.ok()) << imported.error().text;
  EXPECT_EQ(imported.value().loss, "logistic");
  EXPECT_EQ(imported.value().labels, (std::vector<std::string>{"no", "yes"}));
  ExpectNear(Outputs(imported.value().graph, imported.value().parameters, {2, 5}), {15});
}

}  // namespace
}  // namespace freshet::model::onnx
