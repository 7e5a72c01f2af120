#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "data/description.h"
#include "model/network/graph.h"
#include "model/onnx/document.h"

namespace freshet::model::onnx {

// A float as the number that was probably meant: 0.1f is 0.1.
double Plainly(float value);

// A network that is being made of an ONNX graph, node by node. Shapes are inferred when all layers are there; what a
// node says about them is kept as expectations until then.
class ImportGraph {
 public:
  explicit ImportGraph(const Document& document) : document_(document) {}

  // Reads all nodes that the first output depends on. kBadInput names the node.
  Result<void> Run();

  network::Graph graph;
  std::map<std::string, std::vector<float>> weights;  // by the name of the block
  network::Shape raw;  // of the file's input, from which scale and view make the network's
  double scale = 1;
  data::View view;
  data::Target target;  // what the file makes of the network's numbers in the end
  // To be called with the facts of the whole graph.
  using Expectation = std::function<Result<void>(const std::vector<network::Facts>& facts)>;
  std::vector<Expectation> expectations;

 private:
  Result<void> Names();
  Result<void> FindInput();
  const Node* MakerByNumber(const std::string& value, std::string_view op, double& number) const;
  void TakeTarget();
  Result<std::vector<bool>> Needed() const;
  Result<void> One();
  Result<void> CheckOutputs() const;

  // The operators: import_operators.cc, import_shapes.cc, import_input.cc.
  Result<void> Gemm();
  Result<void> MatMul();
  Result<void> AddOrSum();
  Result<void> Mul();
  Result<void> Sub();
  Result<void> Slice();
  Result<void> Conv();
  Result<void> Pool();
  Result<void> Lrn();
  Result<void> BatchNorm();
  Result<void> Softmax();
  Result<void> Concat();
  Result<void> Flatten();
  Result<void> Reshape();
  Result<void> Dropout();
  Result<void> Constant();
  Result<void> Plain(network::Op op);
  Result<void> Alias();
  Result<void> CheckPreparation(std::size_t which);

  Error Wrong(const std::string& what) const;
  // The layer behind the node's input.
  Result<int> In(std::size_t i = 0) const;
  // The constant behind the node's input; null when it is a layer or left out.
  const Tensor* ConstantAt(std::size_t i) const;
  Result<const Tensor*> Weights(std::size_t i, std::string_view what) const;
  bool Has(std::size_t i) const { return i < node_->inputs.size() && !node_->inputs[i].empty(); }
  // Keeps the numbers of a block of a layer. kBadInput when nodes share tensors so often that much more would be made
  // of the file than it holds.
  Result<void> Keep(int layer, std::string_view what, std::vector<float> values);
  // A bias for so many outputs: that many numbers, or one for all.
  Result<std::vector<float>> Bias(const Tensor& tensor, std::int64_t outputs) const;

  // Attributes with their defaults; kBadInput when one is of another kind.
  Result<std::int64_t> Int(std::string_view name, std::int64_t otherwise) const;
  Result<double> Float(std::string_view name, double otherwise) const;
  Result<std::vector<std::int64_t>> Ints(std::string_view name, std::vector<std::int64_t> otherwise) const;
  Result<void> Window(network::Layer& layer) const;

  // Adds a layer under the node's name and makes it the node's output.
  int Give(network::Layer layer);
  std::string NewName(const Node& node);
  void ExpectRank(int layer, std::size_t rank);

  const Document& document_;
  const Node* node_ = nullptr;
  std::string output_;  // the value that is the network's answer
  std::map<std::string, const Tensor*, std::less<>> constants_;
  std::map<std::string, int, std::less<>> layers_;   // of values
  std::map<std::string, int, std::less<>> readers_;  // how many nodes read a value
  std::set<std::string> names_;                      // of layers
  std::size_t room_ = 1 << 20;                       // numbers that may still be kept
};

}  // namespace freshet::model::onnx
