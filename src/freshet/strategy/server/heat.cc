#include "strategy/server/heat.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/random.h"

namespace freshet::strategy::server {
namespace {

// What is told of a block at most, and how often a row must have been seen to be told of.
constexpr std::size_t kHottest = 8, kBusiest = 4;
// Ranges that may move.
constexpr std::size_t kMovable = 64;
constexpr std::uint32_t kSureAfter = 8;
// So that none counts for more than this part of all that have come.
constexpr std::uint64_t kLooks = 4096;

}  // namespace

Heat::Heat(const Options& options, std::size_t blocks)
    : most_every_(options.every), counters_(options.counters), blocks_(blocks) {
  for (std::size_t b = 0; b < blocks; ++b)
    blocks_[b].range_rows = b < options.range_rows.size() ? options.range_rows[b] : UINT64_MAX;
}

// Drawn, so that no letter that comes in turn with others is always looked at, or never.
std::uint64_t Heat::Gap(std::uint64_t came) {
  every_ = std::clamp<std::uint64_t>(came / kLooks, 1, most_every_);
  return 1 + base::Hash64(drawn_++) % (2 * every_ - 1);
}

Heat::Block& Heat::Count(Way way, std::size_t b, std::uint64_t bytes) {
  Block& block = blocks_[b];
  (way == Way::kPulled ? block.pulled : block.pushed) += bytes;
  return block;
}

void Heat::AddToRange(Block& block, std::uint64_t range, double bytes) {
  if (block.ranges.size() <= range) block.ranges.resize(range + 1, 0.0);
  block.ranges[range] += bytes;
}

void Heat::Stretch(Way way, std::size_t b, std::uint64_t first, std::uint64_t count, std::uint64_t bytes) {
  Block& block = Count(way, b, bytes);
  const double each = static_cast<double>(bytes) / static_cast<double>(std::max<std::uint64_t>(count, 1));
  for (std::uint64_t row = first; row < first + count;) {
    const std::uint64_t range = row / block.range_rows, left = block.range_rows - row % block.range_rows;
    const std::uint64_t rows = std::min(left, first + count - row);
    AddToRange(block, range, each * static_cast<double>(rows));
    row += rows;
  }
}

void Heat::Rows(Way way, std::size_t b, std::span<const std::uint32_t> rows, std::uint64_t bytes) {
  Block& block = Count(way, b, bytes);
  std::uint64_t at = skip_;
  for (; at < rows.size(); at += Gap(came_ + at)) {
    const double counts = static_cast<double>(bytes) / static_cast<double>(rows.size()) * static_cast<double>(every_);
    AddToRange(block, rows[at] / block.range_rows, counts);
    See(block, rows[at], counts);
  }
  skip_ = at - rows.size();
  came_ += rows.size();
}

void Heat::See(Block& block, std::uint32_t row, double bytes) const {
  std::vector<Counter>& counters = block.counters;
  auto counter = std::find_if(counters.begin(), counters.end(), [&](const Counter& each) { return each.row == row; });
  if (counter == counters.end() && counters.size() < counters_) {
    counters.push_back({.row = row});
    counter = counters.end() - 1;
  } else if (counter == counters.end()) {
    counter = std::min_element(counters.begin(), counters.end(),
                               [](const Counter& a, const Counter& b) { return a.bytes < b.bytes; });
    *counter = {.row = row, .bytes = counter->bytes, .error = counter->bytes};
  }
  counter->bytes += bytes;
  ++counter->seen;
}

Load Heat::TakeLoad(const ByBlock& group_of, const ByBlock& rows_of) {
  struct Came {
    double bytes = 0;
    std::uint64_t rows = 1;
  };
  std::map<std::pair<std::size_t, std::uint64_t>, Came> came;
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    Block& block = blocks_[b];
    const std::uint64_t rows = rows_of(b);
    block.taken.resize(block.ranges.size(), 0.0);
    for (std::size_t range = 0; range < block.ranges.size(); ++range) {
      if (block.ranges[range] <= block.taken[range]) continue;
      Came& each = came[{group_of(b), range}];
      each.bytes += block.ranges[range] - block.taken[range];
      each.rows = std::max(each.rows, std::min(block.range_rows, rows - std::min(rows, range * block.range_rows)));
    }
    block.taken = block.ranges;
  }
  Load load;
  for (const auto& [which, each] : came) {
    load.busiest.push_back({which.first, which.second, static_cast<std::uint64_t>(each.bytes), each.rows});
    load.bytes += load.busiest.back().bytes;
  }
  std::stable_sort(load.busiest.begin(), load.busiest.end(),
                   [](const Load::Range& a, const Load::Range& b) { return a.bytes > b.bytes; });
  if (load.busiest.size() > kMovable) load.busiest.resize(kMovable);
  return load;
}

Report::Block Heat::Tell(std::size_t b, std::uint64_t rows) const {
  const Block& block = blocks_[b];
  Report::Block told{.rows = rows, .pulled = block.pulled, .pushed = block.pushed, .range_rows = block.range_rows};
  for (const Counter& each : block.counters)
    if (each.seen >= kSureAfter)
      told.hottest.push_back({each.row, static_cast<std::uint64_t>(each.bytes - each.error)});
  for (std::size_t range = 0; range < block.ranges.size(); ++range)
    if (const std::uint64_t first = range * block.range_rows; block.ranges[range] > 0)
      told.busiest.push_back({first, first + std::min(block.range_rows, rows - std::min(rows, first)),
                              static_cast<std::uint64_t>(block.ranges[range])});
  const auto keep_first = [](auto& of, std::size_t most) {
    std::stable_sort(of.begin(), of.end(), [](const auto& a, const auto& c) { return a.bytes > c.bytes; });
    if (of.size() > most) of.resize(most);
  };
  keep_first(told.hottest, kHottest);
  keep_first(told.busiest, kBusiest);
  return told;
}

}  // namespace freshet::strategy::server
