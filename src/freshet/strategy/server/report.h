#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace freshet::strategy::server {

// What a member of a parameter server has to tell at the end beside its times.
struct Report {
  struct Row {
    std::uint64_t row = 0;
    std::uint64_t bytes = 0;  // at least about so many of them were pulled and pushed
  };
  struct Range {
    std::uint64_t first = 0, last = 0;  // rows [first, last)
    std::uint64_t bytes = 0;            // about so many
  };
  struct Block {
    std::string name{};
    std::uint64_t rows = 0, held = 0;      // of the block; those that lie with this server
    std::uint64_t pulled = 0, pushed = 0;  // bytes, from and to this server
    std::uint64_t range_rows = 0;          // of a range
    std::vector<Row> hottest{};            // first; those that were named often enough to be sure
    std::vector<Range> busiest{};          // first
  };
  // Of who works: seconds, by the rank of who was waited for.
  std::vector<double> waited_for{};
  // Of who serves: nothing when it does not.
  std::vector<Block> blocks{};
  std::uint64_t updates = 0;
  // Of all: ranges that went to another server, since theirs had more to do than the others.
  std::uint64_t moved = 0;
};

}  // namespace freshet::strategy::server
