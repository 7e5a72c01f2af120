#pragma once

#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/description.h"
#include "model/network/graph.h"
#include "model/onnx/document.h"
#include "model/onnx/import.h"

namespace freshet::model::onnx {

using Dims = std::vector<std::int64_t>;

// Stands for the number of rows, which is not known, in dimensions and in what is computed from them.
inline constexpr std::int64_t kBatch = std::numeric_limits<std::int64_t>::min() + 1;

// A float as the number that was probably meant: 0.1f is 0.1.
double Plainly(float value);

// A value that depends on the input: what a layer gives, as the file sees it. Without the batch, its dimensions hold
// the layer's numbers in their order, so that a Reshape, a Squeeze, or a Transpose that only moves the batch costs
// nothing.
struct Seen {
  int layer = 0;
  Dims dims = {};           // the batch's is kBatch; a graph that is one row has none
  bool symbols = false;     // whole numbers, for an embedding alone
  bool complement = false;  // 1 - what the layer gives

  std::optional<std::size_t> batch() const;
  network::Shape row() const;  // dims without the batch; at least one
};

// A network that is being made of an ONNX graph, node by node; shapes are inferred as layers are added. Constants are
// computed as far as they depend on shapes and on one another.
class ImportGraph {
 public:
  ImportGraph(const Document& document, const ImportOptions& options) : document_(document), options_(options) {}

  // Reads all nodes that the answer depends on. kBadInput names the node.
  Result<void> Run();

  network::Graph graph;
  std::vector<network::Facts> facts;
  std::map<std::string, std::vector<float>> weights;  // by the name of the block
  network::Shape raw;  // of the file's input, from which scale and view make the network's
  double scale = 1;
  data::View view;
  data::Target target;              // what the file makes of the network's numbers in the end
  std::vector<std::string> labels;  // as operators of ai.onnx.ml say them

 private:
  // The walk: import_graph.cc.
  Result<void> Names();
  Result<void> FindInput();
  void FindOutput();
  const Node* MakerByNumber(const std::string& value, std::string_view op, double& number) const;
  void TakeTarget();
  Result<std::vector<bool>> Needed() const;
  Result<void> One();
  bool IsConstant() const;

  // Values: import_values.cc.
  Result<Seen> In(std::size_t i = 0);
  Result<Seen> InSymbols(std::size_t i);
  // The constant behind the node's input; null when it is a layer or left out.
  const Tensor* ConstantAt(std::size_t i) const;
  Result<const Tensor*> Weights(std::size_t i, std::string_view what) const;
  // Whole numbers that the node is given as attribute (older files) or as constant input.
  Result<std::optional<Dims>> Numbers(std::string_view attribute, std::size_t input) const;
  bool Has(std::size_t i) const { return i < node_->inputs.size() && !node_->inputs[i].empty(); }
  // Adds a layer under the node's name (and what it is for, where it is not the node's own).
  Result<int> Put(network::Layer layer, std::string_view what = "");
  // A layer with the same numbers in this shape.
  Result<int> Shaped(int layer, const network::Shape& shape);
  // With extents of 1 to 3 groups in another order; `order` counts the dimensions of a row of `shape`.
  Result<int> Turned(int layer, const network::Shape& shape, const network::Shape& order);
  void Give(Seen seen, std::size_t output = 0);
  Result<void> Give(network::Layer layer, Dims dims);
  void Give(Tensor constant);
  bool ReadOnce(int layer) const;
  // Where along the row the axis lies, counted without the batch. kBadInput for the batch itself.
  Result<std::size_t> Axis(const Seen& seen, std::int64_t axis) const;
  // Of a value whose first dimension is the batch (or 1 in a graph that is one row): a row.
  Result<network::Shape> Image(const Seen& seen, std::string_view what) const;
  // Keeps the numbers of a block of a layer. kBadInput when nodes share tensors so often that much more would be made
  // of the file than it holds.
  Result<void> Keep(int layer, std::string_view what, std::vector<float> values);
  Result<void> Spend(std::size_t numbers);

  // Operators with weights: import_operators.cc.
  Result<void> Gemm();
  Result<void> MatMul();
  Result<Seen> Dense(const Seen& x, std::vector<float> weight, std::int64_t outputs);
  Result<void> Conv();
  Result<void> Pool();
  Result<void> GlobalPool();
  Result<void> Lrn();
  Result<void> BatchNorm();
  Result<void> Window(network::Layer& layer, const network::Shape& image);

  // Arithmetic: import_arithmetic.cc.
  Result<void> Add();
  Result<void> Sub();
  Result<void> Mul();
  Result<void> Div();
  Result<Seen> Plus(const Seen& x, const Tensor& constant, double sign = 1);
  Result<Seen> Times(const Seen& x, const Tensor& constant, bool inverse);
  Result<Seen> Sum(const std::vector<Seen>& parts);
  Result<network::Shape> Pattern(const Seen& x, const Tensor& constant) const;
  Result<Seen> Affine(const Seen& x, const network::Shape& pattern, std::vector<float> scale, std::vector<float> shift);

  // What an input description can do: import_input.cc. True when it was taken.
  bool Prepares(const Seen& x, std::size_t input) const;
  bool TakeScale(const Seen& x, std::size_t input, const Tensor& factor, bool inverse);
  bool TakeMeans(const Seen& x, std::size_t input, const Tensor& means);
  bool TakeCrop(const Seen& x);

  // Functions: import_functions.cc.
  Result<void> Plain(network::Op op);
  Result<void> Clip();
  Result<void> HardSigmoid();
  Result<void> Softmax(network::Op op);
  Result<void> ReduceMean();
  Result<void> Dropout();

  // What arranges values: import_shapes.cc.
  Result<void> Alias();
  Result<void> Cast();
  Result<void> Concat();
  Result<void> Flatten();
  Result<void> Reshape();
  Result<void> Squeeze();
  Result<void> Unsqueeze();
  Result<void> Transpose();
  Result<void> Slice();
  Result<void> Gather();
  Result<bool> TakeLastStep(const Seen& x, std::size_t axis, std::int64_t begin, std::int64_t end, bool keep);
  Result<void> View(const Seen& x, Dims dims);

  Result<void> Recurrent();  // import_recurrent.cc

  // ai.onnx.ml: import_ml.cc.
  Result<void> LinearClassifier();
  Result<void> LinearRegressor();
  Result<void> Scaler();
  Result<void> Normalizer();
  Result<void> ZipMap();
  void TakeLabels(std::string_view ints, std::string_view strings);

  // Constants made of constants and shapes: import_constants.cc.
  Result<void> Fold();
  Result<Tensor> FoldArithmetic();
  Result<Tensor> FoldGather();
  Result<Tensor> FoldSlice();
  Result<Tensor> FoldConcat();
  Result<Tensor> FoldTranspose();
  Result<Tensor> FoldCast();
  Result<Tensor> FoldReshape();
  Result<Tensor> FoldConstant();
  Result<void> Filled();
  Result<void> ShapeOf();
  // The elements at these places as a tensor of these dimensions.
  Result<Tensor> Picked(const Tensor& from, const std::vector<std::size_t>& places, Dims dims);

  // Attributes with their defaults; kBadInput when one is of another kind.
  Result<std::int64_t> Int(std::string_view name, std::int64_t otherwise) const;
  Result<double> Float(std::string_view name, double otherwise) const;
  std::string Text(std::string_view name, std::string_view otherwise) const;
  Result<Dims> Ints(std::string_view name, Dims otherwise) const;
  std::string NewName(std::string_view what);

  Error Wrong(const std::string& what) const;

  const Document& document_;
  const ImportOptions& options_;
  const Node* node_ = nullptr;
  std::string output_;  // the value that is the network's answer
  std::map<std::string, const Tensor*, std::less<>> constants_;
  std::map<std::string, Seen, std::less<>> values_;
  std::set<std::string, std::less<>> zeros_;         // constants of zeros alone, for each row: states at the start
  std::map<std::string, int, std::less<>> readers_;  // how many needed nodes read a value
  std::deque<Tensor> made_;                          // constants that are in no file
  std::map<std::pair<int, network::Shape>, int> shaped_;
  std::set<std::string> names_;                   // of layers
  std::vector<std::vector<std::string>> called_;  // the values that are this layer
  std::vector<int> uses_;                         // layers that read it
  std::int64_t fixed_batch_ = -1;                 // as the file has it; -1: left open
  std::size_t room_ = 1 << 20;                    // numbers that may still be kept
};

}  // namespace freshet::model::onnx
