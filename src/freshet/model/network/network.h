#pragma once

#include <memory>

#include "base/log.h"
#include "model/model.h"
#include "model/network/backend.h"
#include "model/network/graph.h"

namespace freshet::model::network {

// A model whose computation is a graph of layers, given by config.network in its text form (description.h).
// Its layers are computed by the back-end, which outlives it.
// kInvalid when the graph makes no sense, or not with this loss and these features and classes.
Result<std::unique_ptr<Model>> MakeNetwork(const ModelConfig& config, const Loss& loss,
                                           const Backend& backend = OneDnn());

// A model that is a network, or stands for one: its layers, and what computes them.
class Layered {
 public:
  virtual ~Layered() = default;
  virtual const Graph& graph() const = 0;
  virtual const Backend& backend() const = 0;
};

// The graph of a model that is a network; null for others.
const Graph* GraphOf(const Model& model);
// What computes the layers of one.
const Backend& BackendOf(const Model& model);

// Says so of everything in it that the library can compute only very slowly (Program::slow).
void WarnOfSlowLayers(const Model& model, base::Log& log);

}  // namespace freshet::model::network
