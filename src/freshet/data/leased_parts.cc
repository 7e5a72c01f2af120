#include "data/leased_parts.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/random.h"
#include "base/str.h"

namespace freshet::data {

Result<std::unique_ptr<LeasedParts>> LeasedParts::Make(std::uint64_t parts, Open open) {
  std::unique_ptr<LeasedParts> made(new LeasedParts(parts, std::move(open)));
  const auto first = TRY(made->open_(0));
  const auto bytes = first->bytes();
  if (!bytes)
    return Error{Code::kInvalid,
                 "these rows cannot be cut into parts of bytes: not every file can be read from anywhere"};
  made->bytes_ = static_cast<double>(*bytes);
  double seen_bytes = 0, seen_rows = 0;
  TRY(first->Glimpse([&](const Rows& rows) {
    seen_bytes += static_cast<double>(rows.text.size());
    seen_rows += static_cast<double>(rows.size());
  }));
  if (seen_rows > 0) made->bytes_a_row_ = seen_bytes / seen_rows;
  return made;
}

void LeasedParts::Lease(std::uint64_t holder, std::uint64_t holders) {
  CHECK(holder < holders);
  holder_ = holder;
  holders_ = holders;
}

void LeasedParts::SetWanted(Wanted wanted) {
  wanted_ = std::move(wanted);
  const base::Lock lock(mutex_);
  for (auto& [number, part] : leased_) part.marks.resize(1);  // others would be counted
}

std::uint64_t LeasedParts::ShareOf(std::uint64_t part) const {
  return update_rows_ * (part + 1) / parts_ - update_rows_ * part / parts_;
}

std::size_t LeasedParts::rows() const {
  std::uint64_t rows = 0;
  for (std::uint64_t part = holder_; part < parts_; part += holders_) rows += ShareOf(part);
  return rows;
}

std::vector<double> LeasedParts::Held() const {
  std::vector<double> held(parts_, 0);
  for (std::uint64_t part = holder_; part < parts_; part += holders_) held[part] = 1;
  return held;
}

std::optional<double> LeasedParts::Fraction(const Position& position) const {
  const double rows = static_cast<double>(position.block) * static_cast<double>(update_rows_);
  return std::min(rows * bytes_a_row_ / std::max(bytes_, 1.0), 1.0);
}

std::uint64_t LeasedParts::bad_rows() const {
  const base::Lock lock(mutex_);
  std::uint64_t bad = 0;
  for (const auto& [number, part] : leased_) bad += part.source->bad_rows();
  return bad;
}

Result<void> LeasedParts::Seek(const Position& position) {
  const base::Lock lock(mutex_);
  std::erase_if(leased_, [&](const auto& part) { return part.first % holders_ != holder_; });
  next_ = position.block;
  sequence_ = 0;
  for (std::uint64_t number = holder_; number < parts_; number += holders_) {
    Part& part = leased_[number];
    if (part.source == nullptr) part.source = TRY(open_(number));
    part.share = ShareOf(number);
    TRY(SeekPart(number, part, position.block * part.share));
  }
  return {};
}

// Windows begin at multiples of their size, so that what is mixed does not depend on where one begins.
Result<void> LeasedParts::SeekPart(std::uint64_t number, Part& part, std::uint64_t row) {
  const std::uint64_t begin = row / window_ * window_;
  const auto behind = std::upper_bound(part.marks.begin(), part.marks.end(), begin,
                                       [](std::uint64_t rows, const Part::Mark& mark) { return rows < mark.rows; });
  const Part::Mark mark = *std::prev(behind);
  part.block.Clear();
  part.looked_at = part.taken = 0;
  part.order.clear();
  part.ready.ClearRows();
  part.ended = false;
  part.read = mark.rows;
  TRY(part.source->Seek(mark.position));
  while (part.read < begin && !part.ended) {
    const Batch batch = part.block.batch();
    for (; part.looked_at < batch.rows && part.read < begin; ++part.looked_at)
      part.read += !wanted_ || wanted_(batch, part.looked_at) ? 1 : 0;
    if (part.read < begin) part.ended = !TRY(ReadBlock(part));
  }
  TRY(Want(number, part, row - begin));
  part.taken += std::min<std::size_t>(part.left(), row - begin);
  return {};
}

Result<bool> LeasedParts::ReadBlock(Part& part) {
  part.looked_at = 0;
  part.block.Clear();
  if (!TRY(part.source->Next(part.block))) return false;
  TRY(part.source->Finish(part.block));
  if (part.read > part.marks.back().rows) part.marks.push_back({part.read, part.block.begin});
  return true;
}

// Adds the next window of rows to those that are ready.
Result<void> LeasedParts::FillWindow(std::uint64_t number, Part& part) {
  part.spare.ClearRows();
  part.spare.width = part.block.width;
  const Batch ready = part.ready.batch();
  for (std::size_t i = part.taken; i < part.order.size(); ++i) part.spare.AppendRow(ready, part.order[i]);
  std::swap(part.ready, part.spare);
  part.taken = 0;
  const std::size_t kept = part.ready.size();
  const std::uint64_t window = part.read / window_;
  while (part.read < (window + 1) * window_ && !part.ended) {
    const Batch batch = part.block.batch();
    for (; part.looked_at < batch.rows && part.read < (window + 1) * window_; ++part.looked_at) {
      if (wanted_ && !wanted_(batch, part.looked_at)) continue;
      part.ready.width = batch.width;
      part.ready.AppendRow(batch, part.looked_at);
      ++part.read;
    }
    if (part.read < (window + 1) * window_) part.ended = !TRY(ReadBlock(part));
  }
  part.order.resize(part.ready.size());
  std::iota(part.order.begin(), part.order.end(), 0u);
  if (seed_ == 0) return {};
  base::Random random(seed_, Str("part ", number, ", window ", window));
  for (std::size_t i = part.order.size(); i > kept + 1; --i)
    std::swap(part.order[i - 1], part.order[kept + random.Below(i - kept)]);
  return {};
}

// At least so many are ready, if there are.
Result<void> LeasedParts::Want(std::uint64_t number, Part& part, std::size_t rows) {
  while (part.left() < rows && !part.ended) TRY(FillWindow(number, part));
  return {};
}

void LeasedParts::Take(Part& part, std::size_t rows, Rows& into) {
  const Batch ready = part.ready.batch();
  if (ready.rows > 0) into.width = part.ready.width;
  for (std::size_t i = 0; i < rows && part.left() > 0; ++i) into.AppendRow(ready, part.order[part.taken++]);
}

Result<bool> LeasedParts::Next(Rows& rows) {
  const base::Lock lock(mutex_);
  rows.Clear();
  rows.begin = {.block = next_};
  const std::uint64_t before = next_;
  for (bool whole = true; whole && rows.size() < window_;) {
    for (auto& [number, part] : leased_) {
      TRY(Want(number, part, part.share));
      whole = whole && part.left() >= part.share;
    }
    if (!whole && next_ > before) break;  // a short one is a block of its own
    const std::size_t had = rows.size();
    for (auto& [number, part] : leased_) Take(part, part.share, rows);
    if (rows.size() == had) break;
    ++next_;
  }
  rows.end = {.block = next_};
  if (next_ == before) return false;
  rows.sequence = sequence_++;
  return true;
}

}  // namespace freshet::data
