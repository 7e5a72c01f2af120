#pragma once

#include "fabric/collectives/sparse.h"
#include "optimize/gradient.h"

namespace freshet::strategy {

// The rows that a gradient has touched, in their order.
fabric::SparseRows TouchedRows(const optimize::BlockGradient& block);

}  // namespace freshet::strategy
