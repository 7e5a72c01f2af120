#include <algorithm>

#include "model/network/zoo_networks.h"

namespace freshet::model::network::zoo {

Graph Mlp(const Shape& input, std::int64_t classes, const ZooOptions& options) {
  Graph graph(input);
  int at = graph.Relu(graph.Dense(0, Hidden(options, 50), "hidden"));
  if (const double rate = Dropout(options, 0); rate > 0) at = graph.Dropout(at, rate);
  graph.AddHead(graph.Dense(at, classes, "scores"));
  return graph;
}

Graph Autoencoder(const Shape& input, std::int64_t, const ZooOptions& options) {
  const std::int64_t wide = Hidden(options, 128);
  std::int64_t elements = 1;
  for (const std::int64_t extent : input) elements *= extent;
  Graph graph(input);
  int at = graph.Relu(graph.Dense(0, wide, "encoder"));
  at = graph.Relu(graph.Dense(at, std::max<std::int64_t>(wide / 4, 1), "code"));
  at = graph.Relu(graph.Dense(at, wide, "decoder"));
  graph.AddHead(graph.Dense(at, elements, "copy"));
  graph.target = Target::kInput;
  return graph;
}

Graph CharLstm(const Shape& input, std::int64_t classes, const ZooOptions& options) {
  Graph graph(input);
  int at = graph.Add({.name = "embedding", .op = Op::kEmbedding, .inputs = {0}, .outputs = 64, .vocabulary = classes});
  at = graph.Add({.name = "lstm", .op = Op::kLstm, .inputs = {at}, .outputs = Hidden(options, 128), .sequence = true});
  if (const double rate = Dropout(options, 0); rate > 0) at = graph.Dropout(at, rate);
  graph.AddHead(graph.Add({.name = "scores", .op = Op::kDense, .inputs = {at}, .outputs = classes, .per_step = true}));
  graph.target = Target::kNext;
  return graph;
}

}  // namespace freshet::model::network::zoo
