#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/network/layer.h"
#include "optimize/parameters.h"

namespace freshet::model::network {

// Where scores come out: the loss of this layer's output counts `weight` times. The first head is the network's answer;
// others (auxiliary heads) exist while training only.
struct Head {
  int layer = 0;
  double weight = 1;
};

// What the loss of a row compares the answer with.
enum class Target {
  kLabel,  // the row's label
  kInput,  // the row itself (autoencoder; squared loss)
  kNext,   // at every step the symbol of the next one, at the last step the label (sequence models; softmax)
};
std::string_view NameOf(Target target);

// A network: layers in an order in which each comes after those it reads. Layer 0 is the input. A plain value: build
// it by Add or the short forms below, then Infer says whether it makes sense and what it amounts to.
struct Graph {
  std::vector<Layer> layers;
  Shape input;
  std::vector<Head> heads;
  Target target = Target::kLabel;

  // Is it laid down who holds its layers? Then of all but the input (Infer).
  bool placed() const { return layers.size() > 1 && !layers[1].place.empty(); }

  Graph() = default;
  explicit Graph(Shape of_input);

  // Each returns the number of the new layer. Empty names become the operation's name and number.
  int Add(Layer layer);
  int Dense(int from, std::int64_t outputs, std::string name = "");
  int Convolution(int from, std::int64_t outputs, std::int64_t kernel, std::int64_t stride = 1, std::int64_t pad = 0,
                  std::string name = "", std::int64_t groups = 1);
  int MaxPool(int from, std::int64_t kernel, std::int64_t stride, std::int64_t pad = 0, bool ceil = false,
              std::string name = "");
  int AveragePool(int from, std::int64_t kernel, std::int64_t stride, std::int64_t pad = 0, bool ceil = false,
                  std::string name = "");
  int Plain(Op op, int from, std::string name = "");  // any with one input and nothing that must be said
  int Relu(int from, double slope = 0) { return Add({.op = Op::kRelu, .inputs = {from}, .slope = slope}); }
  int Dropout(int from, double rate) { return Add({.op = Op::kDropout, .inputs = {from}, .rate = rate}); }
  int Concat(std::vector<int> from, std::string name = "");
  int Sum(std::vector<int> from, std::string name = "");
  void AddHead(int layer, double weight = 1) { heads.push_back({layer, weight}); }
};

// What a layer amounts to.
struct Facts {
  Shape shape;                          // of its output
  std::vector<optimize::Block> blocks;  // of its parameters
  double flops = 0;                     // forward, for one row; a multiplication and an addition are two
  std::int64_t elements() const;        // of its output
  std::uint64_t parameters() const;     // floats in its blocks
};

// Facts of every layer. kInvalid names the layer, what is wrong and what was expected; sizes are checked before
// anything is allocated (at most kMostLayers layers, kMostElements in a tensor or block).
inline constexpr std::size_t kMostLayers = 10'000;
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 31;
Result<std::vector<Facts>> Infer(const Graph& graph);
// Facts of the first layer that has none yet, for graphs that grow; says nothing about names and heads.
Result<Facts> InferNext(const Graph& graph, const std::vector<Facts>& facts);

}  // namespace freshet::model::network
