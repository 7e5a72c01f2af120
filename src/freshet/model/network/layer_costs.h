#pragma once

#include <cstddef>
#include <vector>

#include "model/network/graph.h"

// What layers cost, estimated before anything runs: to share out work and to tell of it.
namespace freshet::model::network {

// A number that is read or written costs as much as so many operations.
inline constexpr double kOperationsOfANumber = 32;

// Backward takes as long as so many times forward: once for the gradient of the layer's parameters, where it has some,
// and once for that of its inputs, where these are not the data.
int BackwardTimes(const Graph& graph, const std::vector<Facts>& facts, std::size_t layer);

// By layer, the operations of a training step of `rows` rows that are computed in `parts` parts: forward, backward and the
// update. What a layer computes goes with the rows, what it reads of its parameters with the parts.
std::vector<double> TrainingCosts(const Graph& graph, const std::vector<Facts>& facts, std::size_t rows,
                                  std::size_t parts);

// By layer: does a head depend on it, one of those that exist while training?
std::vector<bool> Used(const Graph& graph);
// By layer: are there parameters in it, or in what it is computed from? Else nothing asks for its gradient.
std::vector<bool> Learning(const Graph& graph, const std::vector<Facts>& facts);

}  // namespace freshet::model::network
