#include "deploy/fresh_rows.h"

#include <algorithm>

#include "base/check.h"

namespace freshet::deploy {

void FreshRows::Clear(std::size_t width) {
  rows_.width = width;
  rows_.ClearRows();
  slips_.clear();
  sequences_.clear();
  begin_ = 0;
}

void FreshRows::Add(std::string_view payload, std::uint64_t sequence) {
  CHECK(UnpackRow(payload, rows_, slips_.emplace_back()).ok());
  sequences_.push_back(sequence);
}

// What fits into one piece, as it mostly does, is not copied.
FreshRows::Piece FreshRows::Take(std::size_t most) {
  const std::size_t begin = begin_, end = std::min(rows_.size(), begin + most);
  begin_ = end;
  const std::span<Slip> slips = std::span(slips_).subspan(begin, end - begin);
  if (slips.size() == rows_.size()) return {rows_, slips, 0};
  piece_.width = rows_.width;
  piece_.ClearRows();
  for (std::size_t r = begin; r < end; ++r) piece_.AppendRow(rows_.batch(), r);
  return {piece_, slips, end < rows_.size() ? sequences_[end] : 0};
}

}  // namespace freshet::deploy
