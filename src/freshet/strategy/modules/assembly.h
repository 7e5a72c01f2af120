#pragma once

#include <string>
#include <vector>

#include "model/network/graph.h"
#include "strategy/ring/cut.h"

namespace freshet::strategy::modules {

// Neighbouring layers of one place: what a member runs at a time.
struct Module {
  ring::LayerRange layers;
  int member = 0;
  double cost = 0;                          // of an update, as model/network/layer_costs.h estimates it
  std::vector<std::size_t> enters, leaves;  // links, in the order of their layers
};

// A tensor that one module makes and others read. The rows themselves are none: every member has them.
struct Link {
  ring::Crossing tensor;
  std::size_t from = 0;
  std::vector<std::size_t> to;  // in their order
  std::size_t first_edge = 0;   // of those from one module to another, of which each has a number
};

// A network whose text says who holds which layers (Layer::place), as modules and what goes between them. A plain value,
// the same for all who are given the same graph.
struct Assembly {
  std::vector<std::string> places;  // by member, in the order in which the text names them
  std::vector<Module> modules;
  std::vector<Link> links;

  std::vector<ring::LayerRange> HeldBy(int member) const;
  std::vector<ring::Crossing> Tensors(const std::vector<std::size_t>& of) const;
};

inline constexpr std::size_t kMostModules = 500, kMostEdges = 1 << 15;

// Of updates of so many rows, in so many micro-batches. kInvalid when nothing says where layers lie, or in too many pieces.
Result<Assembly> Assemble(const model::network::Graph& graph, const std::vector<model::network::Facts>& facts,
                          std::size_t rows, std::size_t micros);

}  // namespace freshet::strategy::modules
