#include "strategy/gather_numbers.h"

#include <cstring>

namespace freshet::strategy {

Result<std::vector<std::vector<std::uint64_t>>> GatherNumbers(fabric::Collectives& collectives,
                                                              const std::vector<std::uint64_t>& mine) {
  std::vector<std::vector<std::uint64_t>> all;
  for (const auto& bytes : TRY(collectives.Gather(std::as_bytes(std::span(mine))))) {
    std::vector<std::uint64_t>& numbers = all.emplace_back(bytes.size() / sizeof(std::uint64_t));
    if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof numbers[0]);
  }
  return all;
}

}  // namespace freshet::strategy
