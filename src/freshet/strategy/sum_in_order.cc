#include "strategy/sum_in_order.h"

#include <cstring>

#include "base/check.h"

namespace freshet::strategy {

Result<std::vector<double>> SumInOrder(fabric::Collectives& collectives, const std::vector<double>& mine) {
  const auto all = TRY(collectives.Gather(std::as_bytes(std::span<const double>(mine))));
  std::vector<double> sum(mine.size(), 0), part(mine.size());
  for (const auto& bytes : all) {
    CHECK(bytes.size() == part.size() * sizeof(double));
    std::memcpy(part.data(), bytes.data(), bytes.size());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
  }
  return sum;
}

}  // namespace freshet::strategy
