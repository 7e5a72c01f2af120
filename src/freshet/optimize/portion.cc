#include "optimize/portion.h"

#include <algorithm>

#include "base/check.h"

namespace freshet::optimize {
namespace {

// How much there is from `first` to `size`, but no more than `most`.
std::uint64_t Between(std::uint64_t first, std::uint64_t most, std::uint64_t size) {
  return std::min(most, size - std::min(first, size));
}

void LeaveOut(Block& block) {
  block.rows = block.most_rows = 0;
  block.held = false;
}

void Cut(Block& block, const Portion::Range& range) {
  const std::uint64_t most_rows = std::max(block.most_rows, block.rows);
  CHECK(range.first_row < most_rows && range.first_column < block.width);
  const std::uint64_t most = Between(range.first_row, range.rows, most_rows);
  const std::uint64_t width = Between(range.first_column, range.columns, block.width);
  CHECK(most > 0 && width > 0);
  if (most == most_rows && width == block.width) return;
  block.within = Block::Within{range.first_row, range.first_column, most_rows, block.width};
  block.rows = Between(range.first_row, most, block.rows);
  block.most_rows = most;
  block.width = width;
}

}  // namespace

Portion Portion::OfBlocks(std::size_t first, std::size_t last) {
  Portion portion;
  portion.ranges.emplace();
  for (std::size_t b = first; b < last; ++b) portion.ranges->push_back({.block = b});
  return portion;
}

std::vector<Block> Portion::Of(std::vector<Block> whole) const {
  if (!ranges) return whole;
  std::vector<Block> blocks = whole;
  for (Block& block : blocks) LeaveOut(block);
  for (const Range& range : *ranges) {
    CHECK(range.block < blocks.size());
    CHECK(!blocks[range.block].held);  // one range of a block
    blocks[range.block] = whole[range.block];
    Cut(blocks[range.block], range);
  }
  return blocks;
}

}  // namespace freshet::optimize
