#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "optimize/parameters.h"

namespace freshet::strategy::server {

// Where a shard that keeps only its own rows has them: range after range, in the order in which these are first named.
// Blocks that do not grow lie as they are in the whole.
class OwnRows {
 public:
  // The blocks of the model, and rows of a range by block.
  OwnRows(const std::vector<optimize::Block>& blocks, std::vector<std::uint64_t> range_rows);

  std::uint64_t RangeRows(std::size_t b) const { return blocks_[b].range_rows; }
  // One more than the largest row that was named, as the whole counts them.
  std::uint64_t rows(std::size_t b) const { return blocks_[b].rows; }
  void Name(std::size_t b, std::uint64_t rows) { blocks_[b].rows = std::max(blocks_[b].rows, rows); }
  // Could the whole have that row?
  bool MayHave(std::size_t b, std::uint64_t row) const { return row < blocks_[b].most_rows; }
  bool packs(std::size_t b) const { return blocks_[b].packed; }

  // The place of a row; nothing if its range has none.
  std::optional<std::uint64_t> Find(std::size_t b, std::uint64_t row) const;
  // Gives the range of a row, which has none, the next place: that of its first row.
  std::uint64_t Add(std::size_t b, std::uint64_t row);

 private:
  struct Block {
    bool packed = false;
    std::uint64_t most_rows = 0, range_rows = 1, rows = 0;
    std::vector<std::uint32_t> ranges = {};  // one more than the number of its place; 0: none
    std::uint32_t places = 0;
  };
  std::vector<Block> blocks_;
};

}  // namespace freshet::strategy::server
