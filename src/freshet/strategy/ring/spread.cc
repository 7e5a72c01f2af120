#include "strategy/ring/spread.h"

#include <algorithm>

#include "base/check.h"
#include "fabric/collectives/collectives.h"

namespace freshet::strategy::ring {
namespace {

constexpr server::Placement::Options kPlacement{.range_rows = Spread::kRangeRows, .points = 512};

}  // namespace

Spread::Spread(const model::Model& model, int members)
    : members_(members), blocks_(model.Blocks()), placement_(blocks_, members, kPlacement) {
  CHECK(model.partials() != nullptr);
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    cuts_.push_back(model.partials()->cut(b));
    if (cuts_[b] == Cut::kNumbers || cuts_[b] == Cut::kRows) {
      CHECK(length_ == 0);
      length_ = cuts_[b] == Cut::kNumbers ? blocks_[b].width : blocks_[b].rows;
    }
    if (cuts_[b] != Cut::kFeatures) continue;
    by_features_ = true;
    features_ = b;
  }
  for (int member = 0; member <= members_; ++member) firsts_.push_back(fabric::ChunkBegin(length_, member, members_));
}

Spread::Range Spread::RangeOf(int member) const {
  const auto at = static_cast<std::size_t>(member);
  return {firsts_[at], firsts_[at + 1]};
}

void Spread::Move(std::span<const std::uint32_t> columns, int from, int to) {
  if (length_ > 0) {
    CHECK(columns.size() == 2 && (to == from + 1 || to == from - 1));
    firsts_[static_cast<std::size_t>(std::max(from, to))] = to > from ? columns[0] : columns[1];
    return;
  }
  for (const std::uint32_t range : columns) {
    const int began = began_.try_emplace(range, OwnerOfRange(range)).first->second;
    placement_.Move(placement_.GroupOf(features_), range, to);
    if (began == to) began_.erase(range);
  }
}

bool Spread::MayMove(std::span<const std::uint32_t> columns, int from, int to) {
  if (length_ == 0)
    return std::all_of(columns.begin(), columns.end(),
                       [&](std::uint32_t range) { return IsRange(range) && OwnerOfRange(range) != to; });
  if (columns.size() != 2 || columns[0] >= columns[1] || columns[1] > length_) return false;
  return from > to ? columns[0] == RangeOf(to).last : columns[1] == RangeOf(to).first;
}

Spread::Columns Spread::HeldBy(int member) {
  if (length_ > 0)
    return {static_cast<std::uint32_t>(RangeOf(member).first), static_cast<std::uint32_t>(RangeOf(member).last)};
  Columns held;
  for (const auto& moved : began_)
    if (OwnerOfRange(moved.first) == member) held.push_back(static_cast<std::uint32_t>(moved.first));
  return held;
}

bool Spread::Hold(const std::vector<Columns>& held) {
  if (held.size() != static_cast<std::size_t>(members_)) return false;
  if (length_ > 0) {
    std::uint64_t first = 0;
    for (const Columns& each : held) {
      if (each.size() != 2 || each[0] != first || each[1] < first) return false;
      first = each[1];
    }
    if (first != length_) return false;
    for (std::size_t member = 0; member < held.size(); ++member) firsts_[member] = held[member][0];
    return true;
  }
  for (const auto& moved : began_) placement_.Move(placement_.GroupOf(features_), moved.first, moved.second);
  began_.clear();
  for (int member = 0; member < members_; ++member) {
    const Columns& ranges = held[static_cast<std::size_t>(member)];
    for (const std::uint32_t range : ranges)
      if (!IsRange(range) || began_.contains(range)) return false;
    Move(ranges, member, member);
  }
  return true;
}

Spread::Range Spread::ColumnsOf(std::size_t b, int member) const {
  if (cuts_[b] != Cut::kNumbers) return {0, blocks_[b].width};
  return RangeOf(member);
}

Spread::Range Spread::RowsOf(std::size_t b, int member) const {
  const std::uint64_t rows = blocks_[b].rows;
  if (cuts_[b] == Cut::kFirst && member != 0) return {};
  if (cuts_[b] != Cut::kRows) return {0, rows};
  return RangeOf(member);
}

optimize::Portion Spread::PortionOf(int member) const {
  optimize::Portion portion;
  portion.ranges.emplace();
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    const Range rows = cuts_[b] == Cut::kFeatures ? Range{0, optimize::Portion::kAll} : RowsOf(b, member);
    const Range columns = ColumnsOf(b, member);
    if (rows.size() > 0 && columns.size() > 0)
      portion.ranges->push_back({b, rows.first, rows.size(), columns.first, columns.size()});
  }
  return portion;
}

std::vector<optimize::Block> Spread::BlocksOf(int member) const {
  std::vector<optimize::Block> blocks = PortionOf(member).Of(blocks_);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (cuts_[b] != Cut::kFeatures) continue;
    blocks[b].most_rows = std::max(blocks[b].most_rows, blocks[b].rows);
    blocks[b].rows = 0;
  }
  return blocks;
}

void Spread::VisitRows(std::size_t b, int member, std::uint64_t from, std::uint64_t rows, const Visit& visit) {
  if (ColumnsOf(b, member).size() == 0) return;
  if (cuts_[b] != Cut::kFeatures) {
    const Range mine = RowsOf(b, member), seen{std::max(mine.first, from), std::min(mine.last, rows)};
    if (seen.first < seen.last) visit(seen, seen.first - mine.first);
    return;
  }
  std::uint64_t at = 0;
  for (std::uint64_t begin = 0; begin < rows; begin += kRangeRows) {
    if (OwnerOfRange(begin / kRangeRows) != member) continue;
    const Range range{std::max(begin, from), std::min(begin + kRangeRows, rows)};
    if (range.first < range.last) visit(range, at + range.first - begin);
    at += kRangeRows;
  }
}

std::uint64_t Spread::CountRows(std::size_t b, int member, std::uint64_t rows) {
  std::uint64_t count = 0;
  VisitRows(b, member, 0, rows, [&](Range range, std::uint64_t) { count += range.size(); });
  return count;
}

void Spread::Take(const optimize::Parameters& whole, std::size_t b, int member, std::uint64_t slots, std::uint64_t from,
                  float* own) {
  const Range columns = ColumnsOf(b, member);
  VisitRows(b, member, from, whole.rows(b), [&](Range rows, std::uint64_t at) {
    float* to = own + at * slots * columns.size();
    for (std::uint64_t row = rows.first; row < rows.last; ++row)
      for (std::uint64_t slot = 0; slot < slots; ++slot, to += columns.size())
        std::copy_n(whole.Row(b, row) + slot * blocks_[b].width + columns.first, columns.size(), to);
  });
}

void Spread::Give(std::span<const float> own, std::size_t b, int member, std::uint64_t slots, std::uint64_t first,
                  optimize::Parameters& whole) {
  const Range columns = ColumnsOf(b, member);
  const std::uint64_t width = slots * columns.size();
  if (own.empty()) return;
  CHECK(first % width == 0 && own.size() % width == 0);
  const Range given{first / width, (first + own.size()) / width};  // of the member's rows
  VisitRows(b, member, 0, whole.rows(b), [&](Range rows, std::uint64_t at) {
    const Range wanted{std::max(at, given.first), std::min(at + rows.size(), given.last)};
    for (std::uint64_t row = wanted.first; row < wanted.last; ++row) {
      const float* from = own.data() + (row - given.first) * width;
      float* to = whole.Row(b, rows.first + (row - at)) + columns.first;
      for (std::uint64_t slot = 0; slot < slots; ++slot, from += columns.size(), to += blocks_[b].width)
        std::copy_n(from, columns.size(), to);
    }
  });
}

}  // namespace freshet::strategy::ring
