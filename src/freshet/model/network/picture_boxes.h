#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/network/graph.h"

namespace freshet::model::network::picture {

// What both pictures draw: one box for a layer and for those that only touch up its output.
struct Box {
  std::vector<std::string> lines;  // name, what it does, what comes out
  Op op = Op::kInput;              // of the layer that gives it its colour
  std::vector<std::size_t> from;   // boxes before it
  bool head = false;
};
std::vector<Box> Boxes(const Graph& graph, const std::vector<Facts>& facts);
const char* ColourOf(Op op);

}  // namespace freshet::model::network::picture
