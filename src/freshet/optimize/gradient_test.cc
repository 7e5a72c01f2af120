#include "optimize/gradient.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "base/str.h"

namespace freshet::optimize {
namespace {

TEST(BlockGradient, SumsByRowAsAMapDoes) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "gradient");
    const std::uint64_t width = 1 + random.Below(4);
    BlockGradient gradient(width);
    for (int round = 0; round < 3; ++round) {  // cleared and used again
      gradient.Clear();
      std::map<std::uint32_t, std::vector<float>> model;
      for (std::uint64_t i = random.Below(100); i > 0; --i) {
        const auto row = static_cast<std::uint32_t>(random.Below(1000));
        auto& expected = model.try_emplace(row, std::vector<float>(width)).first->second;
        float* const values = gradient.Touch(row);
        for (std::uint64_t k = 0; k < width; ++k) {
          const auto value = static_cast<float>(random.Below(100));
          values[k] += value;
          expected[k] += value;
        }
      }
      gradient.Scale(2);
      ASSERT_EQ(gradient.touched().size(), model.size());
      for (std::size_t i = 0; i < gradient.touched().size(); ++i) {
        const auto& expected = model.at(gradient.touched()[i]);
        for (std::uint64_t k = 0; k < width; ++k) ASSERT_EQ(gradient.Values(i)[k], 2 * expected[k]);
      }
    }
  }
}

TEST(BlockGradient, ListsRowsInTheOrderTheyWereFirstTouched) {
  BlockGradient gradient(1);
  for (const std::uint32_t row : {7u, 0u, 7u, 1'000'000u, 3u}) gradient.Touch(row);
  EXPECT_EQ(std::vector<std::uint32_t>(gradient.touched().begin(), gradient.touched().end()),
            (std::vector<std::uint32_t>{7, 0, 1'000'000, 3}));
}

TEST(Gradient, ClearsAndScalesEveryBlock) {
  Gradient gradient;
  gradient.blocks.emplace_back(1);
  gradient.blocks.emplace_back(2);
  *gradient.blocks[0].Touch(0) = 1;
  gradient.blocks[1].Touch(5)[1] = 3;
  gradient.Scale(0.5f);
  EXPECT_EQ(gradient.blocks[0].Values(0)[0], 0.5f);
  EXPECT_EQ(gradient.blocks[1].Values(0)[1], 1.5f);
  gradient.Clear();
  EXPECT_TRUE(gradient.blocks[0].touched().empty());
  EXPECT_EQ(*gradient.blocks[0].Touch(0), 0.0f);
}

}  // namespace
}  // namespace freshet::optimize
