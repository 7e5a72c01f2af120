#include "strategy/packed_rows.h"

#include <cstring>

namespace freshet::strategy {
namespace {

// What is in front of the rows of one worker. All workers are the same program, so that their structs are the same.
struct Head {
  std::uint64_t rows, width, entries, weighted;
};

template <class T>
void Put(const data::Buffer<T>& values, std::vector<std::byte>& out) {
  const auto bytes = std::as_bytes(values.span());
  out.insert(out.end(), bytes.begin(), bytes.end());
}

template <class T>
Result<void> Take(std::span<const std::byte>& from, std::uint64_t count, data::Buffer<T>& to) {
  if (count > from.size() / sizeof(T)) return Error{Code::kCorrupt, "rows that another worker sent are damaged"};
  std::vector<T> values(count);
  if (count > 0) std::memcpy(values.data(), from.data(), count * sizeof(T));
  from = from.subspan(count * sizeof(T));
  to.Clear();
  to.Append(std::span<const T>(values));
  return {};
}

}  // namespace

std::vector<std::byte> PackRows(const data::Rows& rows) {
  const Head head{rows.size(), rows.width, rows.indices.size(), rows.weights.empty() ? 0u : 1u};
  std::vector<std::byte> out(sizeof head);
  std::memcpy(out.data(), &head, sizeof head);
  Put(rows.labels, out);
  Put(rows.weights, out);
  if (rows.width > 0) {
    Put(rows.dense, out);
  } else {
    Put(rows.offsets, out);
    Put(rows.indices, out);
    Put(rows.values, out);
  }
  return out;
}

Result<void> UnpackRows(std::span<const std::byte> from, data::Rows& rows) {
  Head head{};
  if (from.size() < sizeof head) return Error{Code::kCorrupt, "rows that another worker sent are damaged"};
  std::memcpy(&head, from.data(), sizeof head);
  from = from.subspan(sizeof head);
  rows.ClearRows();
  rows.width = head.width;
  TRY(Take(from, head.rows, rows.labels));
  if (head.weighted > 0) TRY(Take(from, head.rows, rows.weights));
  if (head.width > 0) {
    if (head.rows > from.size() / head.width) return Error{Code::kCorrupt, "rows that another worker sent are damaged"};
    return Take(from, head.rows * head.width, rows.dense);
  }
  TRY(Take(from, head.rows + 1, rows.offsets));
  TRY(Take(from, head.entries, rows.indices));
  TRY(Take(from, head.entries, rows.values));
  for (std::size_t r = 0; r < rows.size(); ++r)
    if (rows.offsets[r] > rows.offsets[r + 1] || rows.offsets[r + 1] > head.entries)
      return Error{Code::kCorrupt, "rows that another worker sent are damaged"};
  return {};
}

}  // namespace freshet::strategy
