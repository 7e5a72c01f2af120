#pragma once

#include "base/random.h"
#include "model/network/program.h"

namespace freshet::model::onnx {

// Networks at random, of everything that ONNX can say and Import understands.

class RandomNetwork {
 public:
  explicit RandomNetwork(std::uint64_t seed) : random_(seed, "random network") {}

  network::Graph Make() {
    const bool image = random_.Below(4) != 0;
    graph_ = image ? network::Graph({Some(1, 4), Some(8, 14), Some(8, 14)}) : network::Graph({Some(1, 20)});
    int at = 0;
    if (image) {
      for (std::uint64_t i = random_.Below(6); i > 0; --i) at = OfImage(at);
      at = graph_.Plain(network::Op::kFlatten, at, "flat");
    }
    for (std::uint64_t i = random_.Below(4); i > 0; --i) at = OfVector(at);
    graph_.AddHead(graph_.Dense(at, Some(1, 5), "last"));
    return graph_;
  }

  // Parameters of the graph with random values; variances are positive.
  optimize::Parameters Weights(const network::Graph& graph, optimize::Memory& memory) {
    auto parameters =
        std::move(optimize::Parameters::Create(network::Blocks(network::Infer(graph).value()), memory)).value();
    for (std::size_t b = 0; b < parameters.blocks(); ++b)
      for (float& value : parameters.Values(b)) {
        value = 0.3f * static_cast<float>(random_.Normal());
        if (parameters.block(b).name.ends_with(".variance")) value = 0.5f + value * value;
      }
    return parameters;
  }

 private:
  std::int64_t Some(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random_.Below(static_cast<std::uint64_t>(most - least + 1)));
  }
  network::Shape ShapeOf(int layer) {
    network::Graph so_far = graph_;
    so_far.AddHead(layer);
    return network::Infer(so_far).value()[static_cast<std::size_t>(layer)].shape;
  }
  int Activation(int from) {
    switch (random_.Below(4)) {
      case 0:
        return graph_.Relu(from);
      case 1:
        return graph_.Relu(from, static_cast<double>(Some(1, 4)) / 20);
      case 2:
        return graph_.Plain(network::Op::kTanh, from);
      default:
        return graph_.Plain(network::Op::kSigmoid, from);
    }
  }
  int OfVector(int from) {
    switch (random_.Below(3)) {
      case 0:
        return graph_.Plain(network::Op::kBatchNorm, from);
      case 1:
        return graph_.Add(
            {.op = network::Op::kDense, .inputs = {from}, .outputs = Some(1, 9), .bias = random_.Below(2) == 0});
      default:
        return Activation(from);
    }
  }
  int OfImage(int from) {
    const network::Shape shape = ShapeOf(from);
    const std::int64_t side = std::min<std::int64_t>(3, std::min(shape[1], shape[2]));
    switch (random_.Below(7)) {
      case 0: {
        const std::int64_t groups = shape[0] % 2 == 0 ? Some(1, 2) : 1;
        return graph_.Add({.op = network::Op::kConvolution,
                           .inputs = {from},
                           .outputs = groups * Some(1, 4),
                           .bias = random_.Below(2) == 0,
                           .kernel = {Some(1, side), Some(1, side)},
                           .stride = {Some(1, 2), Some(1, 2)},
                           .pad = {Some(0, 2), Some(0, 2)},
                           .pad_end = {Some(0, 2), Some(0, 2)},
                           .groups = groups});
      }
      case 1: {
        const bool ceil = random_.Below(2) == 0;  // with padding, an export may say the same in another way
        return graph_.MaxPool(from, side, Some(1, side), ceil ? 0 : Some(0, side - 1) / 2, ceil);
      }
      case 2: {
        const int pool = graph_.AveragePool(from, side, Some(1, side), Some(0, side - 1) / 2);
        graph_.layers.back().include_padding = random_.Below(2) == 0;
        return pool;
      }
      case 3:
        return graph_.Add({.op = network::Op::kLrn, .inputs = {from}, .size = 2 * Some(0, 2) + 1, .alpha = 0.01});
      case 4: {
        const int left = graph_.Convolution(from, Some(1, 3), 1), right = Activation(from);
        return graph_.Concat({left, right, from});
      }
      case 5: {
        const int left = graph_.Convolution(from, shape[0], 1);
        return graph_.Sum(random_.Below(2) == 0 ? std::vector{left, from} : std::vector{from, left, left});
      }
      default:
        return random_.Below(2) == 0 ? graph_.Plain(network::Op::kBatchNorm, from) : Activation(from);
    }
  }

  base::Random random_;
  network::Graph graph_;
};

}  // namespace freshet::model::onnx
