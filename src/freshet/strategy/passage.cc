#include "strategy/passage.h"

#include <utility>

#include "base/check.h"

namespace freshet::strategy {

void Passage::Keep(const data::Batch& piece) {
  data::Rows& rows = passed.emplace_back(std::move(spare));
  rows.width = piece.sparse() ? 0 : piece.width;
  rows.ClearRows();
  for (std::size_t r = 0; r < piece.rows; ++r) rows.AppendRow(piece, r);
}

data::Batch Passage::Again(std::uint64_t at) const {
  const std::uint64_t missing = clock() - at;
  CHECK(missing <= passed.size());
  return passed[passed.size() - missing].batch();
}

void Passage::ForgetBefore(std::uint64_t at) {
  while (!passed.empty() && clock() - passed.size() < at) {
    spare = std::move(passed.front());
    passed.pop_front();
  }
}

}  // namespace freshet::strategy
