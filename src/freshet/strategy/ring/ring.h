#pragma once

#include "strategy/strategy.h"

namespace freshet::strategy {

// A ring of members that each hold a part of the model: nobody has a store of parameters, no weights travel in a step but
// those of items, and member i talks to members i-1 and i+1 only. All are handed the same rows (StrategyOptions::whole), but for
// columns, where each may be handed its own, and take every step together; between steps, whenever they Settle, all bring their parts to all.
//
// How a model is cut depends on its kind: networks by layers (pipeline.h), models that say what their parameters make of a
// row (model::Partials) by columns (columns.h), models of ratings (model::Ratings) by users, past whom items walk
// (items.h).
//
// kInvalid for a kind of model that cannot be cut, and for options that do not go with a ring.
Result<StrategyPtr> MakeRing(const StrategyOptions& options, const Strategy::World& world);

}  // namespace freshet::strategy
