#pragma once

#include <cstdint>
#include <vector>

#include "model/network/backend.h"
#include "model/network/graph.h"

namespace freshet::strategy::ring {

// A tensor that enters a stage from the one before: made there or before, read here or later. The rows themselves
// (layer 0) are none: every member has them.
struct Crossing {
  int layer = 0;
  std::int64_t elements = 0;  // of one row
  bool learns = false;        // its gradient goes back the same way
};

// A stage: the layers first … last-1.
struct StageCut {
  int first = 0, last = 0;
  double cost = 0;  // of an update, as model/network/layer_costs.h estimates it
  std::uint64_t parameters = 0;
  std::vector<Crossing> enters;  // in the order of layers
};

struct CutOptions {
  int members = 1, stages_each = 1;
  std::size_t rows = 1, micros = 1;  // of an update
};

// A network cut into stages that lie with the members of a ring in turn, stage s with member s mod members: such that
// the dearest stage is as cheap as can be, within a twentieth, and little travels. Where members hold several, edges are
// moved from there as long as that makes the dearest member cheaper.
//
// The same for all who are given the same graph, whatever computes it. kInvalid when there are fewer layers than stages.
Result<std::vector<StageCut>> CutNetwork(const model::network::Graph& graph,
                                         const std::vector<model::network::Facts>& facts,
                                         const model::network::Backend& backend, const CutOptions& options);

}  // namespace freshet::strategy::ring
