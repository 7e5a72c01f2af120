#pragma once

#include <cstdint>
#include <vector>

#include "optimize/parameters.h"

namespace freshet::strategy::server {

// Which server has which rows. Rows of a block are cut into ranges of about the same size, and ranges are spread by
// consistent hashing: each server stands at many points of a circle, and has the ranges behind its points. So a server
// more or less moves only the ranges it gains or loses.
//
// Blocks that grow with the features of rows are cut at the same rows, so that what belongs to a feature (its weight,
// its factors) is in one place: such blocks are one group. Ranges that turn out to be hot can be moved.
class Placement {
 public:
  struct Options {
    std::size_t range_floats = 16 * 1024;  // of the widest block that grows; of every block that does not
    std::uint64_t range_rows = 0;          // of all blocks, instead
    int points = 128;                      // of a server
    bool alike = false;                    // all blocks are cut alike, where an update looks at several
  };
  Placement(const std::vector<optimize::Block>& blocks, int servers);
  Placement(const std::vector<optimize::Block>& blocks, int servers, const Options& options);

  static constexpr int kScattered = -1;

  int servers() const { return servers_; }
  std::size_t GroupOf(std::size_t b) const { return group_of_[b]; }
  // From now on this range of a group lies with that server; or, of kScattered, its rows one by one with all in turn.
  void Move(std::size_t group, std::uint64_t range, int server);
  std::uint64_t RangeRows(std::size_t b) const { return groups_[group_of_[b]].range_rows; }
  int ServerOf(std::size_t b, std::uint64_t row) {
    const int server = ServerOfRange(group_of_[b], row / RangeRows(b));
    return server == kScattered ? static_cast<int>(row % static_cast<std::uint64_t>(servers_)) : server;
  }
  // The rows [first, last) of a block as far as one server has all of them: until where, and who.
  struct Stretch {
    std::uint64_t last = 0;
    int server = 0;
  };
  Stretch StretchFrom(std::size_t b, std::uint64_t first, std::uint64_t last);
  // How many of the first `rows` of a block that server has.
  std::uint64_t RowsOf(int server, std::size_t b, std::uint64_t rows);

 private:
  struct Group {  // of blocks that are cut alike
    std::uint64_t number = 0, range_rows = 1;
    std::vector<std::uint16_t> owners;  // of ranges, as far as they were asked for; servers: the rows are scattered
  };
  struct Point {
    std::uint64_t at = 0;
    std::uint16_t server = 0;
  };
  int ServerOfRange(std::size_t group, std::uint64_t range);  // or kScattered
  std::uint16_t Owner(std::uint64_t at) const;

  const int servers_;
  std::vector<Point> circle_;  // ascending
  std::vector<Group> groups_;
  std::vector<std::size_t> group_of_;  // by block
};

}  // namespace freshet::strategy::server
