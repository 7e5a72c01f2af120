#pragma once

#include <string>
#include <utility>
#include <vector>

#include "data/description.h"
#include "model/network/graph.h"
#include "model/onnx/document.h"
#include "optimize/parameters.h"

namespace freshet::model::onnx {

// A network read from an ONNX graph.
struct Imported {
  network::Graph graph;
  optimize::Parameters parameters;
  std::string loss;  // softmax or logistic if the graph ended so, which is then the loss's link; else ""
  // What the graph did to its input of shape `raw` before the network, as an input description says it.
  network::Shape raw;
  double scale = 1;
  data::View view;
  data::Target target;              // and what it did to the network's numbers in the end
  std::vector<std::string> labels;  // names of the classes, if the file has them
};

// Makes a network of a feed-forward graph up to its first output: Conv, Gemm, MatMul and Add with constants, Relu,
// LeakyRelu, Tanh, Sigmoid, Softmax, MaxPool, AveragePool, GlobalAveragePool, LRN, BatchNormalization, Dropout, Concat,
// Add, Sum, Flatten, Reshape to rows, Identity, Constant; and at the beginning Mul, Sub and Slice as an export of an
// image network has them, and Mul and Add of one number each at the end, as an export of a regression has them. Layers
// are called as their nodes.
//
// The document may come from anywhere: nothing larger than its own data is allocated. kBadInput names the first node
// that is not understood and why.
Result<Imported> Import(const Document& document, optimize::Memory& memory);

}  // namespace freshet::model::onnx
