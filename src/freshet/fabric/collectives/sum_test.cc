#include "fabric/collectives/sum.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace freshet::fabric {

TEST(Sum, AddsSourcesInOrderAndWritesAllTargetsWhateverTheLength) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    base::Random random(seed, "sum");
    const std::size_t count = random.Below(3000), sources = 1 + random.Below(5);
    std::vector<std::vector<float>> values(sources, std::vector<float>(count));
    for (auto& row : values) {
      for (float& value : row) value = static_cast<float>(random.Normal());
    }
    std::vector<float> expected = values[0];
    for (std::size_t s = 1; s < sources; ++s) {
      for (std::size_t i = 0; i < count; ++i) expected[i] += values[s][i];
    }
    std::vector<const float*> from;
    std::vector<float*> to;  // the sources themselves, as in an all-reduce in place
    for (auto& row : values) from.push_back(row.data()), to.push_back(row.data());
    SumInto(from, to, count);
    for (const auto& row : values) EXPECT_EQ(row, expected) << "seed " << seed;
  }
}

TEST(Sum, AddsOneToAnother) {
  std::vector<float> into = {1, 2, 3};
  const std::vector<float> from = {10, 20, 30};
  Add(into, from.data());
  EXPECT_EQ(into, (std::vector<float>{11, 22, 33}));
}

}  // namespace freshet::fabric
