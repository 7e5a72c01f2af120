#include "strategy/tree_sum.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "strategy/touched_rows.h"

namespace freshet::strategy {
namespace {

using fabric::SparseRows;

SparseRows Sum(const SparseRows& a, const SparseRows& b, std::size_t width) {
  SparseRows sum;
  sum.rows.reserve(a.rows.size() + b.rows.size());
  sum.values.reserve(a.values.size() + b.values.size());
  std::size_t i = 0, j = 0;
  while (i < a.rows.size() || j < b.rows.size()) {
    const bool left = j == b.rows.size() || (i < a.rows.size() && a.rows[i] <= b.rows[j]);
    const bool right = i == a.rows.size() || (j < b.rows.size() && b.rows[j] <= a.rows[i]);
    sum.rows.push_back(left ? a.rows[i] : b.rows[j]);
    for (std::size_t k = 0; k < width; ++k) {
      const float one = left ? a.values[i * width + k] : b.values[j * width + k];
      sum.values.push_back(left && right ? one + b.values[j * width + k] : one);
    }
    i += left ? 1 : 0;
    j += right ? 1 : 0;
  }
  return sum;
}

template <class T>
void Put(std::string& out, std::span<const T> values) {
  out.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

template <class T>
Result<std::vector<T>> Take(std::string_view& bytes, std::uint64_t count) {
  if (bytes.size() / sizeof(T) < count)
    return Error{Code::kCorrupt, Str("a part of a sum: ", count, " values, and ", bytes.size(),
                                     " bytes are left; do all members run the same model?")};
  std::vector<T> values(count);
  if (count > 0) std::memcpy(values.data(), bytes.data(), count * sizeof(T));
  bytes.remove_prefix(count * sizeof(T));
  return values;
}

}  // namespace

PartialSum PartialSum::Of(const optimize::Gradient& gradient, std::size_t block) {
  PartialSum sum{.begin = block, .count = 1};
  sum.touched.resize(gradient.blocks.size());
  for (std::size_t b = 0; b < gradient.blocks.size(); ++b) {
    const optimize::BlockGradient& of = gradient.blocks[b];
    if (of.memory().empty())
      sum.touched[b] = TouchedRows(of);
    else if (of.empty())
      sum.dense.resize(sum.dense.size() + of.memory().size(), 0.0f);
    else
      sum.dense.insert(sum.dense.end(), of.memory().begin(), of.memory().end());
  }
  return sum;
}

void PartialSum::Give(optimize::Gradient& gradient) const {
  gradient.Clear();
  const float* from = dense.data();
  for (std::size_t b = 0; b < gradient.blocks.size(); ++b) {
    optimize::BlockGradient& to = gradient.blocks[b];
    if (!to.memory().empty()) {
      std::copy_n(from, to.memory().size(), to.memory().data());
      to.SetFull();
      from += to.memory().size();
      continue;
    }
    const std::size_t width = to.width();
    for (std::size_t i = 0; i < touched[b].rows.size(); ++i)
      std::copy_n(&touched[b].values[i * width], width, to.Touch(touched[b].rows[i]));
  }
}

void PartialSum::Encode(std::string& out, std::size_t first, std::size_t last) const {
  const std::uint64_t place[] = {begin, count};
  Put(out, std::span<const std::uint64_t>(place));
  Put(out, std::span<const float>(dense).subspan(first, last - first));
  for (const SparseRows& rows : touched) {
    const std::uint64_t size = rows.rows.size();
    Put(out, std::span<const std::uint64_t>(&size, 1));
    Put(out, std::span<const std::uint32_t>(rows.rows));
    Put(out, std::span<const float>(rows.values));
  }
}

Result<PartialSum> PartialSum::Decode(std::string_view& bytes, std::size_t dense, std::span<const std::size_t> widths) {
  const auto place = TRY(Take<std::uint64_t>(bytes, 2));
  PartialSum sum{.begin = place[0], .count = place[1]};
  sum.dense = TRY(Take<float>(bytes, dense));
  for (const std::size_t width : widths) {
    const std::uint64_t size = TRY(Take<std::uint64_t>(bytes, 1))[0];
    SparseRows& rows = sum.touched.emplace_back();
    rows.rows = TRY(Take<std::uint32_t>(bytes, size));
    rows.values = TRY(Take<float>(bytes, size * width));
  }
  return sum;
}

void TreeSum::Merge(PartialSum& left, const PartialSum& right) const {
  CHECK(left.dense.size() == right.dense.size() && left.touched.size() == right.touched.size());
  for (std::size_t i = 0; i < left.dense.size(); ++i) left.dense[i] += right.dense[i];
  for (std::size_t b = 0; b < left.touched.size(); ++b)
    left.touched[b] = Sum(left.touched[b], right.touched[b], widths_[b]);
  left.count *= 2;
}

void TreeSum::Add(PartialSum next) {
  parts_.push_back(std::move(next));
  while (parts_.size() > 1) {
    PartialSum& left = parts_[parts_.size() - 2];
    const PartialSum& right = parts_.back();
    if (left.count != right.count || left.begin % (2 * left.count) != 0 || left.begin + left.count != right.begin)
      return;
    Merge(left, right);
    parts_.pop_back();
  }
}

}  // namespace freshet::strategy
