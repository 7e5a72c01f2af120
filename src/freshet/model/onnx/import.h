#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/network/graph.h"
#include "model/onnx/document.h"
#include "optimize/parameters.h"

namespace freshet::model::onnx {

// A network read from an ONNX graph.
struct Imported {
  network::Graph graph;
  optimize::Parameters parameters;
  std::string loss;                 // softmax or logistic if the graph ended so, which is then the loss's link; else ""
  double scale = 1;                 // by which the graph multiplied its input first; what follows is the network
  std::vector<std::string> labels;  // names of the classes, if the file has them
};

// Makes a network of a feed-forward graph up to its first output: Conv, Gemm, MatMul and Add with constants, Relu,
// LeakyRelu, Tanh, Sigmoid, Softmax, MaxPool, AveragePool, GlobalAveragePool, LRN, BatchNormalization, Dropout, Concat,
// Add, Sum, Flatten, Reshape to rows, Identity, Constant. Layers are called as their nodes.
//
// The document may come from anywhere: nothing larger than its own data is allocated. kBadInput names the first node
// that is not understood and why.
Result<Imported> Import(const Document& document, optimize::Memory& memory);

}  // namespace freshet::model::onnx
