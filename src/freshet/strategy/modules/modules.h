#pragma once

#include "strategy/strategy.h"

namespace freshet::strategy {

// A network whose text says who holds which layers (DIANNE's modules): each worker holds those of one place, in any graph,
// also with branches with different workers. Tensors go straight from the module that makes them to those that read them,
// and their gradients back, micro-batch by micro-batch (modules/order.h). Equal to one worker that computes its updates in
// as many parts (Local::Options::accumulate): batch norm goes by the rows of a micro-batch.
//
// Every member has room for all parameters; between two Settles only those of its own layers are up to date. Who has the
// network's answer tells all of it at the end of a step. What is asked is agreed on before each.
//
// kInvalid for what is no such network, and for as many workers as there are no places.
Result<StrategyPtr> MakeModules(const StrategyOptions& options, const Strategy::World& world);

}  // namespace freshet::strategy
