#pragma once

#include "strategy/strategy.h"

namespace freshet::strategy::ring {

// A ring for networks: each member holds one stage of layers or several, activations go forward to the next member and
// their gradients back to the one before, micro-batch by micro-batch (schedule.h). Equal to one worker that computes
// its updates in as many parts (Local::Options::accumulate): batch norm goes by the rows of a micro-batch, dropout and
// the heads are what they are there.
//
// Every member has room for all parameters and for what the optimizer remembers; between two Settles only those of its
// own stages are up to date. Scores and loss are made by the member that has the network's answer; each gets the scores
// of its share of the rows, and that share of the loss. What is asked with a step is agreed on when the step is made.
Result<StrategyPtr> MakePipeline(const StrategyOptions& options, const Strategy::World& world);

}  // namespace freshet::strategy::ring
