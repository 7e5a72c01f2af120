#pragma once

#include <cstdint>
#include <vector>

namespace freshet::strategy::server {

// What a server has had to do since all last met, in bytes that it was asked for and brought.
struct Load {
  struct Range {
    std::uint64_t group = 0, range = 0;  // as Placement counts them
    std::uint64_t bytes = 0;
    std::uint64_t rows = 1;
    friend bool operator==(const Range&, const Range&) = default;
  };
  std::uint64_t bytes = 0;
  std::vector<Range> busiest;  // first
};

// A range that is to lie with another server; or, of kScattered, its rows in turn with all of them.
struct Move {
  std::uint64_t group = 0, range = 0;
  int to = 0;
  friend bool operator==(const Move&, const Move&) = default;
};

// Which ranges should move, so that no server has much more to do than the others, by server; nothing where none has
// a fourth more than the mean. What comes of it depends on the loads alone, so that all who know them come to the same.
std::vector<Move> Balance(std::vector<Load> loads);

}  // namespace freshet::strategy::server
