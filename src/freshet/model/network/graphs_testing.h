#pragma once

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "model/network/graph.h"

namespace freshet::model::network {

// Random graphs: layers are proposed at random and kept when Infer accepts them and they stay small. Everything that
// nothing reads in the end goes into the head, apart from an end that is now and then left loose.
class RandomGraph {
 public:
  explicit RandomGraph(std::uint64_t seed) : random_(seed, "graph") {
    const std::uint64_t kind = seed % 4;
    symbols_ = kind == 3;
    graph_ = Graph(kind < 2    ? Shape{Between(1, 8), Between(4, 7), Between(4, 7)}
                   : kind == 2 ? Shape{Between(2, 9)}
                               : Shape{Between(2, 5)});
    graph_.AddHead(0);
    if (symbols_) Keep({.op = Op::kEmbedding, .inputs = {0}, .outputs = Between(2, 5), .vocabulary = Between(2, 9)});
    const std::size_t layers = 3 + random_.Below(10);
    for (int attempt = 0; attempt < 500 && graph_.layers.size() < layers; ++attempt) Keep(Propose());
    AddHeads();
  }
  const Graph& graph() const { return graph_; }

 private:
  std::int64_t Between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random_.Below(static_cast<std::uint64_t>(most - least + 1)));
  }
  bool Chance(double share) { return random_.Uniform() < share; }

  // A layer to read from, more often a late one. Symbols are for the embedding alone.
  int Any() {
    const auto end = static_cast<std::int64_t>(graph_.layers.size());
    const std::int64_t first = symbols_ && end > 1 ? 1 : 0;
    return static_cast<int>(std::max(Between(first, end - 1), Between(first, end - 1)));
  }

  void Keep(Layer layer) {
    graph_.Add(std::move(layer));
    const auto facts = Infer(graph_);
    if (!facts.ok() || facts.value().back().elements() > 250) graph_.layers.pop_back();
  }

  Pair Both(std::int64_t least, std::int64_t most) { return {Between(least, most), Between(least, most)}; }

  Layer Propose() {
    constexpr Op kOps[] = {Op::kDense,       Op::kConvolution, Op::kConvolution,
                           Op::kConvolution, Op::kMaxPool,     Op::kMaxPool,
                           Op::kAveragePool, Op::kAveragePool, Op::kGlobalAveragePool,
                           Op::kLrn,         Op::kBatchNorm,   Op::kBatchNorm,
                           Op::kRelu,        Op::kRelu,        Op::kTanh,
                           Op::kSigmoid,     Op::kSoftmax,     Op::kDropout,
                           Op::kConcat,      Op::kConcat,      Op::kSum,
                           Op::kSum,         Op::kFlatten,     Op::kLstm,
                           Op::kGru,         Op::kClip,        Op::kHardSwish,
                           Op::kGelu,        Op::kErf,         Op::kLogSoftmax,
                           Op::kProduct,     Op::kAffine,      Op::kReshape,
                           Op::kTranspose};
    Layer layer{.op = kOps[random_.Below(std::size(kOps))], .inputs = {Any()}};
    layer.outputs = Chance(0.3) ? 8 * Between(1, 2) : Between(1, 9);
    layer.bias = Chance(0.7);
    layer.kernel = Both(1, 3);
    layer.stride = Both(1, 2);
    layer.pad = Both(0, 1);
    layer.pad_end = Both(0, 1);
    layer.per_step = layer.sequence = Chance(0.5);
    layer.slope = Chance(0.5) ? 0 : 0.1;
    layer.rate = 0.3;
    layer.size = Chance(0.5) ? 3 : 5;
    layer.alpha = 0.5;
    layer.epsilon = 0.01;
    layer.ceil = layer.op != Op::kConvolution && Chance(0.5);
    layer.include_padding = Chance(0.5);
    if (layer.op == Op::kConvolution) {
      if (Chance(0.2)) layer.dilation = Both(1, 2);
      if (Chance(0.2)) layer.groups = 2;
    }
    if (layer.op == Op::kProduct) layer.inputs.push_back(Chance(0.3) ? layer.inputs[0] : Any());
    const Shape shape = Infer(graph_).value()[static_cast<std::size_t>(layer.inputs[0])].shape;
    if (layer.op == Op::kAffine) layer.shape = Chance(0.5) ? shape : Shape(shape.size(), 1);
    if (layer.op == Op::kReshape) layer.shape = Shape(shape.rbegin(), shape.rend());
    if (layer.op == Op::kTranspose)
      for (std::size_t d = shape.size(); d-- > 0;) layer.shape.push_back(static_cast<std::int64_t>(d));
    layer.least = -0.7;
    layer.most = 0.9;
    if (layer.op == Op::kConcat || layer.op == Op::kSum)
      for (std::int64_t more = Between(1, 2); more > 0; --more) layer.inputs.push_back(Any());
    return layer;
  }

  void AddHeads() {
    std::vector<bool> read(graph_.layers.size(), false);
    for (const Layer& layer : graph_.layers)
      for (const int input : layer.inputs) read[static_cast<std::size_t>(input)] = true;
    const std::int64_t scores = Between(1, 5);
    const auto last = static_cast<int>(graph_.layers.size()) - 1;
    std::vector<int> ends;
    for (int layer = symbols_ ? 1 : 0; layer <= last; ++layer)
      if (layer == last || (!read[static_cast<std::size_t>(layer)] && !Chance(0.1)))
        ends.push_back(graph_.Dense(layer, scores));
    const int sum = ends.size() > 1 ? graph_.Sum(ends) : ends[0];
    graph_.heads = {{Chance(0.3) ? graph_.Plain(Op::kTanh, sum) : sum, 1.0}};
    if (Chance(0.3)) graph_.AddHead(graph_.Dense(Any(), scores), 0.3);
  }

  base::Random random_;
  bool symbols_ = false;
  Graph graph_;
};

}  // namespace freshet::model::network
