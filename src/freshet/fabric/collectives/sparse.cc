#include "fabric/collectives/sparse.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>

#include "base/check.h"
#include "fabric/codecs/positions.h"
#include "fabric/collectives/in_order.h"

namespace freshet::fabric {

Result<void> SparseAllReduce::Run(Fabric& fabric, Tag tag, SparseRows& touched) {
  CHECK(touched.values.size() == touched.rows.size() * width_);
  CHECK(std::adjacent_find(touched.rows.begin(), touched.rows.end(), std::greater_equal<>()) == touched.rows.end());
  CHECK(touched.rows.empty() || touched.rows.back() < block_rows_);
  const int rank = fabric.rank(), size = fabric.size();
  if (size == 1) return {};
  const auto at = [](int index) { return static_cast<std::size_t>(index); };
  std::vector<SparseRows> owned = Split(touched, size);
  std::vector<std::vector<std::byte>> messages(at(size));
  SparseRows sum;
  TRY(ExchangeInOrder(
      fabric, tag, "making a sum of rows",
      [&](int to) {
        Encode(owned[at(to)], OwnedRows(to, size), messages[at(to)]);
        bytes_sent_ += messages[at(to)].size();
        return std::span<const std::byte>(messages[at(to)]);
      },
      [&](int from, std::span<const std::byte> bytes) -> Result<void> {
        sum = Sum(sum, from == rank ? owned[at(rank)] : TRY(Decode(bytes, OwnedRows(rank, size))));
        return {};
      }));

  std::vector<std::byte>& message = messages[at(rank)];
  Encode(sum, OwnedRows(rank, size), message);
  TRY(ExchangeInOrder(
      fabric, tag + 1, "making a sum of rows",
      [&](int) {
        bytes_sent_ += message.size();
        return std::span<const std::byte>(message);
      },
      [&](int from, std::span<const std::byte> bytes) -> Result<void> {
        owned[at(from)] = from == rank ? std::move(sum) : TRY(Decode(bytes, OwnedRows(from, size)));
        return {};
      }));
  touched = Join(owned);
  return {};
}

std::size_t SparseAllReduce::OwnedRows(int owner, int count) const {
  const auto o = static_cast<std::size_t>(owner), n = static_cast<std::size_t>(count);
  return (block_rows_ + n - 1 - o) / n;
}

void SparseAllReduce::Encode(const SparseRows& owned, std::size_t range, std::vector<std::byte>& out) const {
  out.clear();
  AppendPositions(owned.rows, range, out);
  const auto values = std::as_bytes(std::span(owned.values));
  out.insert(out.end(), values.begin(), values.end());
}

Result<SparseRows> SparseAllReduce::Decode(std::span<const std::byte> bytes, std::size_t range) const {
  SparseRows owned;
  TRY(TakePositions(bytes, range, width_ * sizeof(float), owned.rows));
  const std::size_t floats = owned.rows.size() * width_;
  if (bytes.size() != floats * sizeof(float))
    return Error{Code::kCorrupt, Str("touched rows: ", bytes.size(), " bytes came for ", owned.rows.size(), " rows of ",
                                     width_, " floats; do all members run the same model?")};
  owned.values.resize(floats);
  if (floats > 0) std::memcpy(owned.values.data(), bytes.data(), bytes.size());
  return owned;
}

SparseRows SparseAllReduce::Sum(const SparseRows& a, const SparseRows& b) const {
  SparseRows sum;
  sum.rows.reserve(a.rows.size() + b.rows.size());
  std::set_union(a.rows.begin(), a.rows.end(), b.rows.begin(), b.rows.end(), std::back_inserter(sum.rows));
  sum.values.resize(sum.rows.size() * width_);
  for (const SparseRows* const part : {&a, &b}) {
    const float* from = part->values.data();
    std::size_t at = 0;
    for (const std::uint32_t row : part->rows) {
      while (sum.rows[at] != row) ++at;
      float* const to = sum.values.data() + at * width_;
      for (std::size_t i = 0; i < width_; ++i) to[i] += from[i];
      from += width_;
    }
  }
  return sum;
}

std::vector<SparseRows> SparseAllReduce::Split(const SparseRows& touched, int count) const {
  const auto n = static_cast<std::uint32_t>(count);
  std::vector<SparseRows> owned(n);
  const float* from = touched.values.data();
  for (const std::uint32_t row : touched.rows) {
    SparseRows& to = owned[row % n];
    to.rows.push_back(row / n);
    to.values.insert(to.values.end(), from, from + width_);
    from += width_;
  }
  return owned;
}

SparseRows SparseAllReduce::Join(const std::vector<SparseRows>& owned) const {
  const auto n = static_cast<std::uint32_t>(owned.size());
  SparseRows touched;
  std::size_t rows = 0;
  for (const SparseRows& part : owned) rows += part.rows.size();
  touched.rows.reserve(rows);
  for (std::uint32_t owner = 0; owner < n; ++owner)
    for (const std::uint32_t row : owned[owner].rows) touched.rows.push_back(row * n + owner);
  std::sort(touched.rows.begin(), touched.rows.end());
  touched.values.reserve(rows * width_);
  std::vector<std::size_t> taken(n);
  for (const std::uint32_t row : touched.rows) {
    const std::uint32_t owner = row % n;
    const float* const from = owned[owner].values.data() + taken[owner]++ * width_;
    touched.values.insert(touched.values.end(), from, from + width_);
  }
  return touched;
}

}  // namespace freshet::fabric
