#include "strategy/touched_rows.h"

#include <algorithm>
#include <numeric>

namespace freshet::strategy {

fabric::SparseRows TouchedRows(const optimize::BlockGradient& block) {
  fabric::SparseRows touched;
  std::vector<std::size_t> order(block.touched().size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return block.touched()[a] < block.touched()[b]; });
  for (const std::size_t i : order) {
    touched.rows.push_back(block.touched()[i]);
    const auto values = block.Values(i);
    touched.values.insert(touched.values.end(), values.begin(), values.end());
  }
  return touched;
}

}  // namespace freshet::strategy
