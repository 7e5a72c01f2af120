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

struct ImportOptions {
  bool one_row = false;  // the input has no batch: all of it is one row
};

// Makes a network of a graph up to its answer: the first output, or of a classifier that names the class first, its
// scores. The operators are those of the list in import_graph.cc, with opsets 7 to 23; what they may say is checked
// where they are read. Mul, Div, Sub and Slice at the beginning, as an export of an image network has them, become the
// input's description; Mul and Add of one number each at the end, as
// an export of a regression has them, its target. Layers are called as their nodes.
//
// The document may come from anywhere: nothing much larger than its own data is allocated. kBadInput names the first
// node that is not understood and why.
Result<Imported> Import(const Document& document, optimize::Memory& memory, const ImportOptions& options = {});

}  // namespace freshet::model::onnx
