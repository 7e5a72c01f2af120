#include "strategy/server/own_rows.h"

#include "base/check.h"

namespace freshet::strategy::server {

OwnRows::OwnRows(const std::vector<optimize::Block>& blocks, std::vector<std::uint64_t> range_rows) {
  CHECK(range_rows.size() == blocks.size());
  for (std::size_t b = 0; b < blocks.size(); ++b)
    blocks_.push_back({.packed = blocks[b].most_rows > blocks[b].rows,
                       .most_rows = std::max(blocks[b].most_rows, blocks[b].rows),
                       .range_rows = range_rows[b],
                       .rows = blocks[b].most_rows > blocks[b].rows ? 0 : blocks[b].rows});
}

std::optional<std::uint64_t> OwnRows::Find(std::size_t b, std::uint64_t row) const {
  const Block& block = blocks_[b];
  if (!block.packed) return row;
  const std::uint64_t range = row / block.range_rows;
  if (range >= block.ranges.size() || block.ranges[range] == 0) return {};
  return (block.ranges[range] - 1) * block.range_rows + row % block.range_rows;
}

std::uint64_t OwnRows::Add(std::size_t b, std::uint64_t row) {
  Block& block = blocks_[b];
  CHECK(!Find(b, row).has_value());
  const std::uint64_t range = row / block.range_rows;
  if (range >= block.ranges.size()) block.ranges.resize(std::max<std::size_t>(range + 1, range * 3 / 2), 0);
  block.ranges[range] = ++block.places;
  return (block.places - 1) * block.range_rows;
}

}  // namespace freshet::strategy::server
