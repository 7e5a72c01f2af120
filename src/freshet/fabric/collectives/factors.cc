#include "fabric/collectives/factors.h"

#include <cstring>

#include "base/check.h"
#include "fabric/collectives/in_order.h"

namespace freshet::fabric {
namespace {

// A message is all inputs, then all deltas; how many examples they are follows from its length.
Result<Factors> Read(std::span<const std::byte> bytes, std::size_t input_width, std::size_t delta_width) {
  const std::size_t example_bytes = (input_width + delta_width) * sizeof(float);
  if (bytes.size() % example_bytes != 0)
    return Error{Code::kCorrupt, Str("factors: ", bytes.size(), " bytes came, an example has ", example_bytes,
                                     "; do all members run the same model?")};
  Factors factors;
  factors.examples = bytes.size() / example_bytes;
  factors.inputs.resize(factors.examples * input_width);
  factors.deltas.resize(factors.examples * delta_width);
  const std::size_t input_bytes = factors.inputs.size() * sizeof(float);
  if (input_bytes > 0) std::memcpy(factors.inputs.data(), bytes.data(), input_bytes);
  if (bytes.size() > input_bytes)
    std::memcpy(factors.deltas.data(), bytes.data() + input_bytes, bytes.size() - input_bytes);
  return factors;
}

}  // namespace

bool FactorsPay(int members, std::size_t examples, std::size_t outputs, std::size_t inputs) {
  const auto n = static_cast<double>(members), m = static_cast<double>(outputs), k = static_cast<double>(inputs);
  return (n - 1) * static_cast<double>(examples) * (m + k) < 2 * (n - 1) / n * m * k;
}

Result<std::vector<Factors>> GatherFactors(Fabric& fabric, Tag tag, std::span<const float> inputs,
                                           std::size_t input_width, std::span<const float> deltas,
                                           std::size_t delta_width) {
  CHECK(input_width + delta_width > 0);
  CHECK(inputs.size() * delta_width == deltas.size() * input_width);
  std::vector<std::byte> mine;
  mine.reserve(inputs.size_bytes() + deltas.size_bytes());
  for (const std::span<const std::byte> part : {std::as_bytes(inputs), std::as_bytes(deltas)})
    mine.insert(mine.end(), part.begin(), part.end());
  std::vector<Factors> all(static_cast<std::size_t>(fabric.size()));
  TRY(ExchangeInOrder(
      fabric, tag, "making a sum of factors", [&](int) { return std::span<const std::byte>(mine); },
      [&](int from, std::span<const std::byte> bytes) -> Result<void> {
        all[static_cast<std::size_t>(from)] = TRY(Read(from == fabric.rank() ? mine : bytes, input_width, delta_width));
        return {};
      }));
  return all;
}

}  // namespace freshet::fabric
