#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "strategy/server/balance.h"
#include "strategy/server/report.h"

namespace freshet::strategy::server {

// Where a shard is hot: how many bytes were pulled and pushed, by ranges of rows, and which rows were named most.
//
// Bytes are counted all. Of rows that are named one by one the first few thousand are looked at, and then ever fewer,
// down to one of about `every`, each of which counts for those between, so that counting costs little beside answering.
// Those that come most often are found by a fixed number of counters (Metwally, Agrawal, El Abbadi, "Efficient
// Computation of Frequent and Top-k Elements in Data Streams", 2005): a row that has none takes over the smallest, and
// what that had counted before is its error. So a row that has more than one of `counters` parts of all has a counter.
//
// Threads: one.
class Heat {
 public:
  enum class Way { kPulled, kPushed };
  struct Options {
    std::vector<std::uint64_t> range_rows{};  // by block; empty: each is one range
    std::uint64_t every = 1024;
    std::size_t counters = 64;  // of a block
  };
  Heat(const Options& options, std::size_t blocks);

  // So many bytes for the rows [first, first + count), or for these.
  void Stretch(Way way, std::size_t b, std::uint64_t first, std::uint64_t count, std::uint64_t bytes);
  void Rows(Way way, std::size_t b, std::span<const std::uint32_t> rows, std::uint64_t bytes);

  // What came since the last call, by ranges of blocks that are cut alike (`group_of`, by block) and have so many rows.
  using ByBlock = std::function<std::size_t(std::size_t b)>;
  Load TakeLoad(const ByBlock& group_of, const ByBlock& rows_of);

  // What there is to tell of a block of so many rows: bytes, and its hottest rows and busiest ranges.
  Report::Block Tell(std::size_t b, std::uint64_t rows) const;

 private:
  struct Counter {
    std::uint32_t row = 0;
    std::uint32_t seen = 0;  // times, since it is this row's
    double bytes = 0, error = 0;
  };
  struct Block {
    std::uint64_t range_rows = 0;
    std::uint64_t pulled = 0, pushed = 0;
    std::vector<double> ranges, taken;  // and what was taken of them
    std::vector<Counter> counters;
  };
  Block& Count(Way way, std::size_t b, std::uint64_t bytes);
  static void AddToRange(Block& block, std::uint64_t range, double bytes);
  void See(Block& block, std::uint32_t row, double bytes) const;
  std::uint64_t Gap(std::uint64_t came);

  const std::uint64_t most_every_;
  const std::size_t counters_;
  std::vector<Block> blocks_;
  std::uint64_t came_ = 0;               // rows that were named
  std::uint64_t every_ = 1, drawn_ = 0;  // one of so many is looked at now; gaps between them that were drawn
  std::uint64_t skip_ = 0;               // rows before the next
};

}  // namespace freshet::strategy::server
