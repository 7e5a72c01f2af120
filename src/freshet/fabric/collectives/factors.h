#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fabric/fabric.h"

namespace freshet::fabric {

// The gradient of a fully connected layer of m × n weights over b examples is the sum of b outer products, delta ⊗
// input: b (m + n) floats say as much as m n do. Factors cannot be added up on the way, so everyone sends its own to
// everyone.

// Does a member send fewer bytes as factors, (N-1) b (m+n) floats, than by all-reducing the matrix, 2 (N-1)/N m n?
bool FactorsPay(int members, std::size_t examples, std::size_t outputs, std::size_t inputs);

struct Factors {
  std::size_t examples = 0;
  std::vector<float> inputs;  // row by row, one for each example
  std::vector<float> deltas;
};

// The factors of all members, in the order of ranks, to be added up by the caller in that order. `inputs` holds
// input_width floats for each example and `deltas` delta_width; the widths (not both 0) are the same everywhere, the
// number of examples may differ. Uses one tag.
//
// Threads: as the fabric. Blocking and failure: as ExchangeInOrder; kCorrupt for bytes that are no whole examples.
Result<std::vector<Factors>> GatherFactors(Fabric& fabric, Tag tag, std::span<const float> inputs,
                                           std::size_t input_width, std::span<const float> deltas,
                                           std::size_t delta_width);

}  // namespace freshet::fabric
