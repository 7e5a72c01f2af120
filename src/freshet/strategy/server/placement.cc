#include "strategy/server/placement.h"

#include <algorithm>

#include "base/check.h"
#include "base/random.h"

namespace freshet::strategy::server {
namespace {

std::uint64_t Mix(std::uint64_t a, std::uint64_t b) { return base::Hash64(base::Hash64(a) ^ (b + 0x9E3779B97F4A7C15)); }

bool Grows(const optimize::Block& block) { return block.most_rows > block.rows; }

}  // namespace

Placement::Placement(const std::vector<optimize::Block>& blocks, int servers) : Placement(blocks, servers, Options()) {}

Placement::Placement(const std::vector<optimize::Block>& blocks, int servers, const Options& options)
    : servers_(servers) {
  CHECK(servers > 0 && servers < 65535 && options.range_floats > 0);
  for (int server = 0; server < servers; ++server)
    for (int point = 0; point < options.points; ++point)
      circle_.push_back({Mix(static_cast<std::uint64_t>(server), static_cast<std::uint64_t>(point)),
                         static_cast<std::uint16_t>(server)});
  std::sort(circle_.begin(), circle_.end(), [](const Point& a, const Point& b) { return a.at < b.at; });
  std::uint64_t widest = 1;
  const auto joins = [&](const optimize::Block& block) { return options.alike || Grows(block); };
  for (const optimize::Block& block : blocks)
    if (joins(block)) widest = std::max(widest, block.width);
  const auto rows = [&](std::uint64_t width) {
    if (options.range_rows > 0) return options.range_rows;
    return std::max<std::uint64_t>(options.range_floats / std::max<std::uint64_t>(width, 1), 1);
  };
  groups_.push_back({.number = 0, .range_rows = rows(widest), .owners = {}});
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    group_of_.push_back(joins(blocks[b]) ? 0 : groups_.size());
    if (!joins(blocks[b])) groups_.push_back({.number = b + 1, .range_rows = rows(blocks[b].width), .owners = {}});
  }
}

std::uint16_t Placement::Owner(std::uint64_t at) const {
  const auto next = std::lower_bound(circle_.begin(), circle_.end(), at,
                                     [](const Point& point, std::uint64_t value) { return point.at < value; });
  return next == circle_.end() ? circle_.front().server : next->server;
}

void Placement::Move(std::size_t group, std::uint64_t range, int server) {
  CHECK(server == kScattered || (server >= 0 && server < servers_));
  ServerOfRange(group, range);
  groups_[group].owners[range] = static_cast<std::uint16_t>(server == kScattered ? servers_ : server);
}

int Placement::ServerOfRange(std::size_t number, std::uint64_t range) {
  Group& group = groups_[number];
  // Counted from 1, apart from servers: what is hashed alike would lie at the same places.
  while (group.owners.size() <= range)
    group.owners.push_back(Owner(Mix((group.number + 1) << 40, group.owners.size())));
  return group.owners[range] == servers_ ? kScattered : group.owners[range];
}

Placement::Stretch Placement::StretchFrom(std::size_t b, std::uint64_t first, std::uint64_t last) {
  const std::uint64_t size = RangeRows(b);
  const std::size_t group = group_of_[b];
  std::uint64_t range = first / size;
  if (ServerOfRange(group, range) == kScattered) return {.last = first + 1, .server = ServerOf(b, first)};
  Stretch stretch{.last = 0, .server = ServerOfRange(group, range)};
  do {
    ++range;
  } while (range * size < last && ServerOfRange(group, range) == stretch.server);
  stretch.last = std::min(range * size, last);
  return stretch;
}

std::uint64_t Placement::RowsOf(int server, std::size_t b, std::uint64_t rows) {
  std::uint64_t count = 0;
  for (std::uint64_t first = 0; first < rows;) {
    const Stretch stretch = StretchFrom(b, first, rows);
    if (stretch.server == server) count += stretch.last - first;
    first = stretch.last;
  }
  return count;
}

}  // namespace freshet::strategy::server
