#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "optimize/portion.h"

namespace freshet::model::network {

struct Graph;
struct Facts;

// How fully connected layers are cut into slices. Several workers run the same network, each on rows of its own. Of the
// weights of such a layer each holds a slice, and computes what that makes of the rows of all: what travels are the
// layer's inputs and outputs, and their gradients, instead of the gradient of its weights. Everything else about the
// network is as without slices.
struct Slicing {
  // By what a layer's weights are cut: its outputs are rows of them, its inputs columns. Biases are not cut.
  enum class Cut { kWhole, kOutputs, kInputs };

  int rank = 0, size = 1;
  std::vector<Cut> cuts;          // by layer
  std::vector<std::size_t> rows;  // of this batch, by worker; who has none computes its slices all the same

  bool operator==(const Slicing&) const = default;
};

// Gives every worker what is to it, and returns when what is from each has come; by worker, of whom this one is left
// out. All workers call it together.
using Exchange =
    std::function<void(std::span<const std::span<const float>> to, std::span<const std::span<float>> from)>;

// Where the slice of a worker begins, of so many outputs or inputs.
std::size_t SliceBegin(std::size_t count, int worker, int workers);

// Floats that go to each worker, and come from each, when all bring their own rows of so many columns to all: whole rows,
// or, cut, of each row the columns of who gets them. What is made of them goes back the other way round.
struct Amounts {
  std::vector<std::size_t> to, from;

  Amounts Back() && { return {std::move(from), std::move(to)}; }
};
Amounts BringRows(const Slicing& slicing, std::size_t columns, bool cut);

// A fully connected layer, for who asks what its slices would exchange.
struct Wide {
  std::size_t inputs = 0, outputs = 0;
  bool wanted = true;  // the gradient of its inputs; not that of the data
};
// Floats that a worker sends for one in a step of so many rows of all workers, when it is cut like this; whole: the
// gradient of its weights, by all-reduce.
double NumbersSent(Slicing::Cut cut, const Wide& layer, int workers, std::size_t rows);

// By layer, the cut by which the least travels in a step of so many rows of all workers; with `always`, one where there
// is any. Layers that are smaller than the number of workers stay whole, and those that are not fully connected, or are
// so for every step of a sequence.
std::vector<Slicing::Cut> CutIntoSlices(const Graph& graph, const std::vector<Facts>& facts, int workers,
                                        std::size_t rows, bool always = false);

// What a worker holds: its slices, and all of every other block.
optimize::Portion PortionOf(const Slicing& slicing, const std::vector<Facts>& facts);

}  // namespace freshet::model::network
