#include "model/slices.h"

#include <algorithm>

namespace freshet::model {
namespace {

constexpr std::uint64_t kWork = 1 << 20;  // multiplications, or so, of a slice
constexpr std::uint64_t kRowItself = 16;  // a row without entries costs as much as so many

}  // namespace

std::size_t SliceEnd(const Model& model, const data::Batch& batch, std::size_t begin, std::size_t network_rows) {
  const Traits traits = model.traits();
  if (traits.uses_team) return std::min(begin + network_rows, batch.rows);
  const std::uint64_t entries = std::max<std::uint64_t>(kWork / traits.met_by_entry, 1);
  if (!batch.sparse())
    return std::min<std::size_t>(begin + std::max<std::uint64_t>(entries / (batch.width + kRowItself), 1), batch.rows);
  const auto cost = [&](std::size_t end) {
    return batch.offsets[end] - batch.offsets[begin] + kRowItself * (end - begin);
  };
  if (cost(batch.rows) <= entries) return batch.rows;
  std::size_t enough = begin + 1, much = batch.rows;  // at least one row; the cost rises with the end
  while (enough < much) {
    const std::size_t middle = enough + (much - enough + 1) / 2;
    if (cost(middle) <= entries)
      enough = middle;
    else
      much = middle - 1;
  }
  return enough;
}

}  // namespace freshet::model
