// Files that somebody broke, by accident or on purpose: an error that says why, and no more memory than the file has.

#include "model/onnx/read.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "model/onnx/export.h"
#include "model/onnx/import.h"
#include "model/onnx/network_testing.h"
#include "model/onnx/wire.h"
#include "model/onnx/write.h"

namespace freshet::model::onnx {
namespace {

std::string SmallModel() {
  optimize::HeapMemory memory;
  network::Graph graph({1, 6, 6});
  const int conv = graph.Convolution(0, 2, 3, 1, 1, "conv");
  const int pool = graph.MaxPool(graph.Relu(conv), 2, 2);
  graph.AddHead(graph.Dense(graph.Plain(network::Op::kFlatten, pool, "flat"), 3, "last"));
  const auto parameters = RandomNetwork(1).Weights(graph, memory);
  base::StringFile file;
  EXPECT_TRUE(Write(ExportNetwork(graph, parameters, *FindLoss("softmax").value()).value(), file).ok());
  return file.text;
}

// A model with this graph.
std::string ModelWith(const std::string& graph) {
  WireWriter opset, model;
  opset.Bytes(1, "");
  opset.Int(2, 13);
  model.Int(1, 7);
  model.Bytes(8, opset.message());
  model.Bytes(7, graph);
  return model.message();
}

std::string ModelWithTensor(const std::string& tensor) {
  WireWriter graph;
  graph.Bytes(5, tensor);
  return ModelWith(graph.message());
}

std::string TensorWith(const std::vector<std::int64_t>& dims, std::int64_t type, const std::string& raw) {
  WireWriter tensor;
  for (const std::int64_t dim : dims) tensor.Int(1, dim);
  tensor.Int(2, type);
  tensor.Bytes(8, "t");
  tensor.Bytes(9, raw);
  return tensor.message();
}

std::string Refusal(const std::string& bytes) {
  const auto document = Read(bytes);
  if (document.ok()) return "it was taken";
  EXPECT_EQ(document.error().code, Code::kBadInput);
  return document.error().text;
}

void ExpectMentions(const std::string& text, const std::string& piece) {
  EXPECT_NE(text.find(piece), std::string::npos) << "'" << piece << "' is not in: " << text;
}

TEST(Read, RefusesAFileCutOffAtAnyByte) {
  const std::string whole = SmallModel();
  optimize::HeapMemory memory;
  ASSERT_TRUE(Import(Read(whole).value(), memory).ok());
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(Read(whole.substr(0, size)).ok()) << "cut to " << size << " of " << whole.size() << " bytes";
}

TEST(Read, SurvivesAnyChangedByte) {
  const std::string whole = SmallModel();
  optimize::HeapMemory memory;
  base::Random random(1, "changed bytes");
  for (int i = 0; i < 20'000; ++i) {
    std::string changed = whole;
    for (std::uint64_t k = 1 + random.Below(3); k > 0; --k)
      changed[random.Below(changed.size())] = static_cast<char>(random.Below(256));
    const auto document = Read(changed);
    if (document.ok()) (void)Import(document.value(), memory);
  }
}

TEST(Read, RefusesTensorsWhoseShapeIsAbsurd) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  ExpectMentions(Refusal(ModelWithTensor(TensorWith({-3}, 1, ""))), "a dimension of size -3");
  ExpectMentions(Refusal(ModelWithTensor(TensorWith({kMost, kMost}, 1, ""))), "more than 2147483648 elements");
  ExpectMentions(Refusal(ModelWithTensor(TensorWith({1 << 20, 1 << 20, 1 << 24}, 1, ""))), "more than");
  ExpectMentions(Refusal(ModelWithTensor(TensorWith({1 << 30}, 1, "abcd"))),
                 "4 bytes of data, its shape says 4294967296");
  ExpectMentions(Refusal(ModelWithTensor(TensorWith({2}, 1, "abcd"))), "4 bytes of data, its shape says 8");
  ExpectMentions(Refusal(ModelWithTensor(TensorWith({1, 1, 1, 1, 1, 1, 1, 1, 1}, 1, "abcd"))),
                 "more than 8 dimensions");
  EXPECT_EQ(Refusal(ModelWithTensor(TensorWith({1}, 8, ""))), "it was taken") << "texts: nobody may need them";
  EXPECT_EQ(Refusal(ModelWithTensor(TensorWith({0, kMost}, 1, ""))), "it was taken");
}

TEST(Read, RefusesAMillionNodesBeforeItBuildsOne) {
  WireWriter graph;
  for (int i = 0; i < 1'000'000; ++i) graph.Bytes(1, "");
  ExpectMentions(Refusal(ModelWith(graph.message())), "more than 10000 nodes");
  WireWriter node, few;
  for (int i = 0; i < 1'000'000; ++i) node.Bytes(5, "");
  few.Bytes(1, node.message());
  ExpectMentions(Refusal(ModelWith(few.message())), "more than 160000 attributes");
  WireWriter names, one;
  for (int i = 0; i < 1'000'000; ++i) names.Bytes(1, "");
  one.Bytes(1, names.message());
  ExpectMentions(Refusal(ModelWith(one.message())), "more than 200000 inputs and outputs of nodes");
  WireWriter tensors;
  for (int i = 0; i < 1'000'000; ++i) tensors.Bytes(5, "");
  ExpectMentions(Refusal(ModelWith(tensors.message())), "more than 80000 tensors");
  WireWriter packed;
  packed.Bytes(7, std::string(2'000'000, '\1'));
  packed.Int(2, 7);
  ExpectMentions(Refusal(ModelWithTensor(packed.message())), "more than 1048576 whole numbers");
}

TEST(Read, TakesNumbersPackedAndNotPacked) {
  WireWriter floats, ints;
  floats.Int(1, 3);
  floats.Int(2, 1);
  floats.Bytes(8, "f");
  for (const float value : {1.0f, 2.0f, 3.0f}) floats.Float(4, value);
  ints.Bytes(1, "\3");
  ints.Int(2, 7);
  ints.Bytes(8, "i");
  ints.Bytes(7, "\5\6\7");
  WireWriter graph;
  graph.Bytes(5, floats.message());
  graph.Bytes(5, ints.message());
  const auto document = Read(ModelWith(graph.message()));
  ASSERT_TRUE(document.ok()) << document.error().text;
  EXPECT_EQ(document.value().initializers[0].Floats(), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(document.value().initializers[1].Ints(), (std::vector<std::int64_t>{5, 6, 7}));
}

TEST(Read, RefusesWhatIsNoOnnxFile) {
  EXPECT_NE(Refusal(""), "it was taken");
  EXPECT_NE(Refusal("hello, world"), "it was taken");
  EXPECT_NE(Refusal(std::string(100, '\0')), "it was taken");
  EXPECT_NE(Refusal(std::string(100, '\xff')), "it was taken");
}

TEST(Write, RefusesTwoGigabytes) {
  Document document;
  const std::string_view pretended("", 0);
  document.initializers.push_back({"t", Type::kFloat, {1}, {pretended.data(), std::size_t{1} << 31}});
  base::StringFile file;
  const auto written = Write(document, file);
  ASSERT_FALSE(written.ok());
  ExpectMentions(written.error().text, "such files must stay below 2 GB");
  EXPECT_EQ(file.text, "");
}

}  // namespace
}  // namespace freshet::model::onnx
