#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "model/network/graph.h"

namespace freshet::model::network {

// What can be said about a network of the zoo. What is not said is as the network is known for.
struct ZooOptions {
  std::int64_t hidden = 0;  // units of the hidden dense layers, of the state of char-lstm. 0: its own
  double dropout = -1;      // share of values dropped before the last layer. Below 0: its own
  double lrn_k = 1;         // alexnet, googlenet: 1 as in Caffe, 2 as in the AlexNet paper
  bool auxiliary = true;    // googlenet: with its two auxiliary heads
};

struct ZooEntry {
  std::string_view name, description;
  Shape input;           // what it was made for
  std::int64_t classes;  // likewise
};
std::span<const ZooEntry> Zoo();

// A network by name, for rows of shape `input` and `classes` scores (for the sequence model: symbols; the autoencoder
// has as many as its input). kInvalid when there is none of that name, or it cannot be built for such an input.
Result<Graph> MakeZoo(std::string_view name, const Shape& input, std::int64_t classes, const ZooOptions& options = {});

}  // namespace freshet::model::network
