#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "model/network/graph.h"
#include "model/network/zoo.h"

namespace freshet::model::network::zoo {

// The networks of the zoo, for its table. The graphs are unchecked: MakeZoo looks whether they fit their input.

using Builder = Graph(const Shape& input, std::int64_t classes, const ZooOptions& options);

Builder Mlp, Autoencoder, CharLstm;                                       // zoo_small.cc
Builder LeNet5, CifarQuick, AlexNet, AlexNetGroups, GoogLeNet, ResNet20;  // zoo_*.cc

// What was asked for, or the network's own.
inline std::int64_t Hidden(const ZooOptions& options, std::int64_t own) {
  return options.hidden > 0 ? options.hidden : own;
}
inline double Dropout(const ZooOptions& options, double own) { return options.dropout >= 0 ? options.dropout : own; }
inline int Lrn(Graph& graph, int from, const ZooOptions& options, std::string name) {
  return graph.Add({.name = std::move(name), .op = Op::kLrn, .inputs = {from}, .k = options.lrn_k});
}

}  // namespace freshet::model::network::zoo
