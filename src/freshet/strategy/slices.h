#pragma once

#include "strategy/strategy.h"

namespace freshet::strategy {

// Of a network with so many workers, for updates of so many rows of all: has it a fully connected layer of which less
// travels as slices? Not what is no network.
bool SlicesPay(const model::Model& model, int members, std::uint64_t rows);

// All-reduce but for wide layers of networks, of whose weights each worker has a slice: what goes in and out of these
// travels, instead of the gradient of their weights (model/network/slicing.h). The model is that of all-reduce.
//
// Every worker has room for the whole model, which is up to date when all have met (Settle).
Result<StrategyPtr> MakeSlices(const StrategyOptions& options, const Strategy::World& world);

// The same within groups of neighbours by rank (StrategyOptions::group), each of which has all slices: gradients of
// slices are summed over those who have the same one, all others over all workers.
Result<StrategyPtr> MakeHybrid(const StrategyOptions& options, const Strategy::World& world);

}  // namespace freshet::strategy
