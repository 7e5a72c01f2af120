#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "optimize/parameters.h"

namespace freshet::optimize {

// Which of a model's parameters somebody holds: all of them, the blocks of a stage, a shard's rows of blocks, or a
// range of their columns. Parameters, gradients and optimizer state of a portion have the blocks of the whole, under
// the same numbers; a block that is not held has no rows, and nothing is allocated for it.
struct Portion {
  static constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
  // What is held of one block: rows and columns (floats of a row) from the first on, as many as said or as there are.
  struct Range {
    std::size_t block = 0;
    std::uint64_t first_row = 0, rows = kAll;
    std::uint64_t first_column = 0, columns = kAll;
  };
  std::optional<std::vector<Range>> ranges = {};  // at most one of a block; nothing: all of every block

  // All of the blocks first … last-1.
  static Portion OfBlocks(std::size_t first, std::size_t last);
  // The blocks as this portion has them, given those of the whole. Ranges must begin in their blocks.
  std::vector<Block> Of(std::vector<Block> whole) const;
};

}  // namespace freshet::optimize
