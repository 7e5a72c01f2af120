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

// The layers first … last-1.
struct LayerRange {
  int first = 0, last = 0;
  bool operator==(const LayerRange&) const = default;
  bool holds(int layer) const { return first <= layer && layer < last; }
};

// A stage: the layers first … last-1.
struct StageCut {
  int first = 0, last = 0;
  double cost = 0;  // of an update, as model/network/layer_costs.h estimates it
  std::uint64_t parameters = 0;
  std::vector<Crossing> enters;  // in the order of layers

  LayerRange layers() const { return {first, last}; }
};

struct CutOptions {
  int members = 1, stages_each = 1;
  std::size_t rows = 1, micros = 1;  // of an update
};

// The places where a network may be cut: before each layer that counts, but the first. Counted from 0; place count() is
// the network's end. A plain value.
class Places {
 public:
  Places() = default;  // none
  Places(const model::network::Graph& graph, const std::vector<model::network::Facts>& facts,
         const model::network::Backend& backend, const CutOptions& options);

  std::size_t count() const { return begins_.size(); }  // layers that count
  double CostBetween(std::size_t first, std::size_t last) const { return before_[last] - before_[first]; }
  double dearest() const;                                            // of the layers
  double floats(std::size_t place) const { return floats_[place]; }  // that travel for a row, there and back
  int LayerAt(std::size_t place) const;                              // the first after the cut
  std::size_t PlaceOf(int layer) const;                              // the first place that is not before this layer
  std::vector<Crossing> At(std::size_t place) const;                 // what crosses the cut
  StageCut Between(std::size_t first, std::size_t last) const;

 private:
  struct Layer {
    std::int64_t elements = 0;
    std::uint64_t parameters = 0;
    bool learns = false;
    int last_reader = 0;
  };
  std::vector<Layer> layers_;
  std::vector<int> begins_;           // layers that count
  std::vector<double> before_ = {0};  // cost of those before each
  std::vector<double> floats_;
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
