#pragma once

#include <vector>

#include "data/tensor_file.h"
#include "optimize/parameters.h"

namespace freshet::model {

// What a range of a block (Block::within) has of a tensor of the whole block: row after row, as far as there are any.
// Rows of the tensor may be several times as wide as the block (an optimizer's slots, one after another), and so are
// those that come back. kCorrupt for a tensor that is not of such a block.
Result<std::vector<float>> CutOut(const data::Tensor& tensor, const optimize::Block& block);

}  // namespace freshet::model
