#include "strategy/observe.h"

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

std::vector<std::byte> Pack(const data::Rows& rows) {
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

template <class T>
void Take(std::span<const std::byte>& from, std::size_t count, data::Buffer<T>& to) {
  std::vector<T> values(count);
  CHECK(from.size() >= count * sizeof(T));
  if (count > 0) std::memcpy(values.data(), from.data(), count * sizeof(T));
  from = from.subspan(count * sizeof(T));
  to.Clear();
  to.Append(std::span<const T>(values));
}

void Unpack(std::span<const std::byte> from, data::Rows& rows) {
  Head head{};
  CHECK(from.size() >= sizeof head);
  std::memcpy(&head, from.data(), sizeof head);
  from = from.subspan(sizeof head);
  rows.ClearRows();
  rows.width = head.width;
  Take(from, head.rows, rows.labels);
  if (head.weighted > 0) Take(from, head.rows, rows.weights);
  if (head.width > 0) return Take(from, head.rows * head.width, rows.dense);
  Take(from, head.rows + 1, rows.offsets);
  Take(from, head.entries, rows.indices);
  Take(from, head.entries, rows.values);
}

}  // namespace

Result<void> ObserveTogether(const Strategy::World& world, const data::Rows& mine) {
  data::Rows theirs;
  for (const auto& bytes : TRY(world.collectives.Gather(Pack(mine)))) {
    Unpack(bytes, theirs);
    if (theirs.size() == 0) continue;
    TRY(world.model.Prepare(world.parameters, theirs.batch()));
    TRY(world.optimizer.Follow(world.parameters));
    world.model.Observe(world.parameters, theirs.batch(), world.optimizer);
  }
  return {};
}

}  // namespace freshet::strategy
