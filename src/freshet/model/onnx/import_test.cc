#include "model/onnx/import.h"

#include <gtest/gtest.h>

#include "model/network/zoo.h"
#include "model/onnx/builder.h"
#include "model/onnx/export.h"
#include "model/onnx/network_testing.h"
#include "model/onnx/read.h"
#include "model/onnx/write.h"

namespace freshet::model::onnx {
namespace {

using network::Graph;
using network::Layer;
using network::Op;

std::string Written(const Document& document) {
  base::StringFile file;
  EXPECT_TRUE(Write(document, file).ok());
  return file.text;
}

Result<Imported> ImportBytes(const std::string& bytes, optimize::Memory& memory) {
  return Import(TRY(Read(bytes)), memory);
}

void ExpectSame(const Layer& a, const Layer& b) {
  SCOPED_TRACE(a.name);
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.op, b.op);
  EXPECT_EQ(a.inputs, b.inputs);
  EXPECT_EQ(a.outputs, b.outputs);
  if (a.op == Op::kDense || a.op == Op::kConvolution) {
    EXPECT_EQ(a.bias, b.bias);
  }
  EXPECT_EQ(a.kernel, b.kernel);
  EXPECT_EQ(a.stride, b.stride);
  EXPECT_EQ(a.pad, b.pad);
  EXPECT_EQ(a.pad_end, b.pad_end);
  EXPECT_EQ(a.dilation, b.dilation);
  EXPECT_EQ(a.groups, b.groups);
  EXPECT_EQ(a.ceil, b.ceil);
  EXPECT_EQ(a.include_padding, b.include_padding);
  EXPECT_EQ(a.slope, b.slope);
  EXPECT_EQ(a.size, b.size);
  EXPECT_EQ(a.alpha, b.alpha);
  EXPECT_EQ(a.beta, b.beta);
  EXPECT_EQ(a.k, b.k);
  EXPECT_EQ(a.epsilon, b.epsilon);
  EXPECT_EQ(a.momentum, b.momentum);
}

TEST(Import, GivesBackWhatWasExported) {
  optimize::HeapMemory memory;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    RandomNetwork random(seed);
    const Graph graph = random.Make();
    const optimize::Parameters parameters = random.Weights(graph, memory);
    const bool classes = seed % 2 == 0;
    const auto document = ExportNetwork(graph, parameters, *FindLoss(classes ? "softmax" : "squared").value());
    ASSERT_TRUE(document.ok()) << document.error().text;
    const auto imported = ImportBytes(Written(document.value()), memory);
    ASSERT_TRUE(imported.ok()) << imported.error().text;
    EXPECT_EQ(imported.value().loss, classes ? "softmax" : "");
    EXPECT_EQ(imported.value().graph.input, graph.input);
    ASSERT_EQ(imported.value().graph.layers.size(), graph.layers.size());
    for (std::size_t i = 0; i < graph.layers.size(); ++i) ExpectSame(imported.value().graph.layers[i], graph.layers[i]);
    ASSERT_EQ(imported.value().parameters.blocks(), parameters.blocks());
    for (std::size_t b = 0; b < parameters.blocks(); ++b)
      EXPECT_EQ(imported.value().parameters.Gather(b), parameters.Gather(b));
  }
}

TEST(Import, TakesTheNetworksOfTheZoo) {
  optimize::HeapMemory memory;
  for (const network::ZooEntry& entry : network::Zoo()) {
    const bool huge = entry.name.starts_with("alexnet");
    if (huge) continue;
    SCOPED_TRACE(entry.name);
    const Graph graph = network::MakeZoo(entry.name, entry.input, entry.classes).value();
    const auto parameters = RandomNetwork(1).Weights(graph, memory);
    const bool classes = entry.classes > 0;
    const auto document = ExportNetwork(graph, parameters, *FindLoss(classes ? "softmax" : "squared").value());
    ASSERT_TRUE(document.ok()) << document.error().text;
    const auto imported = ImportBytes(Written(document.value()), memory);
    EXPECT_TRUE(imported.ok()) << imported.error().text;
  }
}

// A graph by hand: input [N, 4] and whatever `add` puts behind it as "out".
class ByHand {
 public:
  explicit ByHand(std::vector<std::int64_t> dims = {4}) : builder_(document) {
    builder_.Input("x", Type::kFloat, std::move(dims));
  }
  Builder* operator->() { return &builder_; }
  Result<Imported> Import(optimize::Memory& memory) {
    if (document.outputs.empty()) builder_.Output("out", Type::kFloat, {1});
    return ImportBytes(Written(document), memory);
  }
  std::string Refusal() {
    optimize::HeapMemory memory;
    const auto imported = Import(memory);
    if (imported.ok()) return "it was taken";
    EXPECT_EQ(imported.error().code, Code::kBadInput);
    return imported.error().text;
  }
  Document document;

 private:
  Builder builder_;
};

void ExpectMentions(const std::string& text, const std::string& piece) {
  EXPECT_NE(text.find(piece), std::string::npos) << "'" << piece << "' is not in: " << text;
}

TEST(Import, MakesAMatrixAndAConstantAddedToItOneLayer) {
  optimize::HeapMemory memory;
  ByHand graph;
  graph->Node("MatMul", {"x", graph->Floats("w", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})}, {}, "product");
  graph->Node("Add", {graph->Floats("b", {1, 2}, {9, 10}), "product"}, {}, "out");
  const auto imported = graph.Import(memory);
  ASSERT_TRUE(imported.ok()) << imported.error().text;
  ASSERT_EQ(imported.value().graph.layers.size(), 2u);
  EXPECT_TRUE(imported.value().graph.layers[1].bias);
  EXPECT_EQ(imported.value().parameters.Gather(0), (std::vector<float>{1, 3, 5, 7, 2, 4, 6, 8}));
  EXPECT_EQ(imported.value().parameters.Gather(1), (std::vector<float>{9, 10}));
}

TEST(Import, UnderstandsTheScaleOfTheInputConstantsAliasesAndReshapes) {
  optimize::HeapMemory memory;
  ByHand graph({1, 2, 2});
  graph->Node("Mul", {"x", graph->Scalar("s", 0.5f)}, {}, "scaled");
  graph->Node("Identity", {"scaled"}, {}, "same");
  graph->Node("Reshape", {"same", graph->Ints("shape", {-1, 4})}, {}, "flat");
  graph->Node("Dropout", {"flat", graph->Scalar("ratio", 0.3f)}, {}, "dropped");
  graph->Node("Gemm", {"dropped", graph->Floats("w", {4, 1}, {1, 2, 3, 4})}, {FloatAttribute("alpha", 2)}, "dense");
  graph->Node("Sigmoid", {"dense"}, {}, "out");
  const auto imported = graph.Import(memory);
  ASSERT_TRUE(imported.ok()) << imported.error().text;
  EXPECT_EQ(imported.value().scale, 0.5);
  EXPECT_EQ(imported.value().loss, "logistic");
  ASSERT_EQ(imported.value().graph.layers.size(), 4u);
  EXPECT_EQ(imported.value().graph.layers[2].rate, 0.3);
  EXPECT_EQ(imported.value().parameters.Gather(0), (std::vector<float>{2, 4, 6, 8}));
}

TEST(Import, TakesWhatAnInputDescriptionCanDoAndNothingElse) {
  optimize::HeapMemory memory;
  ByHand graph({2, 6, 5});
  graph->Node("Mul", {"x", graph->Scalar("s", 0.1f)}, {}, "scaled");
  graph->Node("Sub", {"scaled", graph->Floats("m", {1, 2, 1, 1}, {1, 2})}, {}, "centred");
  graph->Node("Mul", {"centred", graph->Floats("d", {1, 2, 1, 1}, {0.5f, 4})}, {}, "ready");
  graph->Node("Slice", {"ready", graph->Ints("begin", {1, 0}), graph->Ints("end", {5, 4}), graph->Ints("axes", {2, 3})},
              {}, "shown");
  graph->Node("Relu", {"shown"}, {}, "out");
  const auto imported = graph.Import(memory);
  ASSERT_TRUE(imported.ok()) << imported.error().text;
  EXPECT_EQ(imported.value().raw, (network::Shape{2, 6, 5}));
  EXPECT_EQ(imported.value().graph.input, (network::Shape{2, 4, 4}));
  EXPECT_EQ(imported.value().scale, 0.1);
  EXPECT_EQ(imported.value().view, (data::View{4, {1, 2}, {2, 0.25f}}));
}

TEST(Import, MakesLayersOfArithmeticThatNoDescriptionCanDo) {
  optimize::HeapMemory memory;
  ByHand late;
  late->Node("Relu", {"x"}, {}, "relu");
  late->Node("Mul", {"relu", late->Scalar("s", 2)}, {}, "out");
  const auto imported = late.Import(memory);
  ASSERT_TRUE(imported.ok()) << imported.error().text;
  EXPECT_EQ(imported.value().scale, 1);
  EXPECT_EQ(imported.value().graph.layers.back().op, Op::kAffine);
  ByHand beside;
  beside->Node("Mul", {"x", beside->Scalar("s", 2)}, {}, "twice");
  beside->Node("Add", {"twice", "x"}, {}, "out");
  const auto both = beside.Import(memory);
  ASSERT_TRUE(both.ok()) << both.error().text;
  EXPECT_EQ(both.value().scale, 1) << "others read the input as it is";
}

TEST(Import, NamesTheFirstOperatorItDoesNotKnow) {
  ByHand graph;
  graph->Node("Relu", {"x"}, {}, "fine");
  graph->Node("Einsum", {"fine"}, {}, "odd");
  graph->Node("Hardmax", {"odd"}, {}, "out");
  ExpectMentions(graph.Refusal(), "node Einsum 'odd': this operator is not known here; known are Conv, Gemm");
}

TEST(Import, DoesNotMindWhatTheFirstOutputDoesNotNeed) {
  optimize::HeapMemory memory;
  ByHand graph;
  graph->Node("Einsum", {"x"}, {}, "odd");
  graph->Node("Relu", {"x"}, {}, "out");
  const auto imported = graph.Import(memory);
  EXPECT_TRUE(imported.ok()) << imported.error().text;
}

TEST(Import, RefusesCyclesAndNamesThatAreTaken) {
  ByHand cycle;
  cycle->Node("Add", {"x", "back"}, {}, "out");
  cycle->Node("Relu", {"out"}, {}, "back");
  ExpectMentions(cycle.Refusal(), "reads 'back', which nothing before it gives: the graph has a cycle");
  ByHand twice;
  twice->Node("Relu", {"x"}, {}, "out");
  twice.document.nodes.push_back(twice.document.nodes[0]);
  ExpectMentions(twice.Refusal(), "two values are called 'out'");
  ByHand over;
  over->Node("Relu", {"x"}, {}, "out");
  over.document.nodes[0].outputs[0] = "x";
  ExpectMentions(over.Refusal(), "two values are called 'x'");
}

TEST(Import, RefusesWeightsThatDoNotFit) {
  ByHand graph;
  graph->Node("Gemm", {"x", graph->Floats("w", {3, 2}, std::vector<float>(6))}, {}, "out");
  ExpectMentions(graph.Refusal(), "the weights 'out.weight' are 6 numbers; 2 x 4 are needed");
  ByHand bias;
  bias->Node("Gemm", {"x", bias->Floats("w", {4, 2}, std::vector<float>(8)), bias->Floats("b", {3}, {1, 2, 3})}, {},
             "out");
  ExpectMentions(bias.Refusal(), "a bias of 3 numbers for 2 outputs");
  ByHand huge;
  huge->Node("Gemm", {"x", huge->Floats("w", {0, 2'000'000'000}, {}), huge->Floats("b", {1}, {1})}, {}, "out");
  ExpectMentions(huge.Refusal(), "its matrix is empty");
  ByHand wild;
  wild->Node("Gemm", {"x", wild->Floats("w", {4, 1}, {1, 2, 3, std::numeric_limits<float>::infinity()})}, {}, "out");
  ExpectMentions(wild.Refusal(), "not finite");
}

TEST(Import, RefusesWeightsSharedToMakeMuchOfLittle) {
  ByHand graph;
  const std::string w = graph->Floats("w", {1000, 1000}, std::vector<float>(1'000'000));
  std::string at = graph->Node("Gemm", {"x", graph->Floats("first", {4, 1000}, std::vector<float>(4000))}, {});
  for (int i = 0; i < 100; ++i) at = graph->Node("Gemm", {at, w}, {});
  graph->Output(at, Type::kFloat, {1000});
  ExpectMentions(graph.Refusal(), "too many nodes share their weights");
}

TEST(Import, RefusesInputsItCannotFeed) {
  ByHand open({-1, 4});
  open->Node("Relu", {"x"}, {}, "out");
  ExpectMentions(open.Refusal(), "only the batch, its first dimension, may be left open or large");
  ByHand two;
  two->Input("y", Type::kFloat, {4});
  two->Node("Add", {"x", "y"}, {}, "out");
  ExpectMentions(two.Refusal(), "more than one input");
  ByHand image({3, 4, 4});
  image->Node("Gemm", {"x", image->Floats("w", {48, 1}, std::vector<float>(48))}, {}, "out");
  ExpectMentions(image.Refusal(), "its input has 4 dimensions, expected 2; put a Flatten before it");
}

}  // namespace
}  // namespace freshet::model::onnx
