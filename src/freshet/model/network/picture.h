#pragma once

#include <string>
#include <vector>

#include "model/network/graph.h"

namespace freshet::model::network {

// A network as a picture: a box for each layer with its name, what it does and its output; activations and dropout
// stand in the box of the layer before when nobody else reads that. `facts` are what Infer says of the graph.
std::string ToDot(const Graph& graph, const std::vector<Facts>& facts);  // for Graphviz
std::string ToSvg(const Graph& graph, const std::vector<Facts>& facts);  // laid out here, from top to bottom

// What a layer does, in a few words: "convolution 96, 11 × 11 / 4".
std::string Summary(const Layer& layer);
// An extent in words: "96 × 55 × 55".
std::string ShapeText(const Shape& shape);

}  // namespace freshet::model::network
