#pragma once

#include <functional>
#include <memory>
#include <span>

#include "base/log.h"
#include "model/model.h"
#include "model/network/graph.h"

namespace freshet::model::network {

// A model whose computation is a graph of layers, given by config.network in its text form (description.h).
// kInvalid when the graph makes no sense, or not with this loss and these features and classes.
Result<std::unique_ptr<Model>> MakeNetwork(const ModelConfig& config, const Loss& loss);

// The graph of a model that is a network; null for others.
const Graph* GraphOf(const Model& model);

// Says so of everything in it that the library can compute only very slowly (Program::slow).
void WarnOfSlowLayers(const Model& model, base::Log& log);

// Does the gradient of this model depend on what other workers, who make the same update, compute meanwhile? It does
// where there is batch norm.
bool SumsOverWorkers(const Model& model);
// LossAndGradient of such a model calls `sum` from now on, which adds up these numbers over all workers, in place; with
// null, this workspace's rows are all there are. Every worker makes the same sums: one without rows calls
// LossAndGradient, too, with an empty batch.
void SumBy(Workspace& workspace, std::function<void(std::span<float> values)> sum);

}  // namespace freshet::model::network
