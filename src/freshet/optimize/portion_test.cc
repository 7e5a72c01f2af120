#include "optimize/portion.h"

#include <gtest/gtest.h>

#include "optimize/counting_memory_testing.h"
#include "optimize/gradient.h"
#include "optimize/optimizer.h"

namespace freshet::optimize {
namespace {

std::vector<Block> Whole() {
  return {{.name = "a", .rows = 10, .width = 6},
          {.name = "b", .rows = 1, .width = 6},
          {.name = "grows", .rows = 0, .width = 2, .most_rows = 1000}};
}

TEST(Portion, OfNothingSaidIsAllOfEveryBlock) {
  const std::vector<Block> blocks = Portion{}.Of(Whole());
  ASSERT_EQ(blocks.size(), 3u);
  EXPECT_EQ(blocks[0].rows, 10u);
  for (const Block& block : blocks) EXPECT_TRUE(block.held && !block.within);
}

TEST(Portion, HasNoRowsOfABlockItDoesNotHold) {
  const std::vector<Block> blocks = Portion::OfBlocks(1, 2).Of(Whole());
  ASSERT_EQ(blocks.size(), 3u);
  EXPECT_EQ(blocks[1].rows, 1u);
  for (const std::size_t b : {0, 2}) {
    EXPECT_FALSE(blocks[b].held);
    EXPECT_EQ(blocks[b].most_rows, 0u);
    EXPECT_EQ(blocks[b].name, Whole()[b].name);
  }
}

TEST(Portion, CutsRowsAndColumnsAndSaysWhereTheyWere) {
  const Portion portion{{{{.block = 0, .first_row = 7, .rows = 5, .first_column = 4},
                          {.block = 2, .first_row = 100, .rows = 50, .columns = 1}}}};
  const std::vector<Block> blocks = portion.Of(Whole());
  EXPECT_EQ(blocks[0].rows, 3u);  // there are no more
  EXPECT_EQ(blocks[0].width, 2u);
  EXPECT_EQ(blocks[0].within->first_row, 7u);
  EXPECT_EQ(blocks[0].within->first_column, 4u);
  EXPECT_EQ(blocks[0].within->width, 6u);
  EXPECT_EQ(blocks[2].rows, 0u);  // of the rows that may come
  EXPECT_EQ(blocks[2].most_rows, 50u);
  EXPECT_EQ(blocks[2].within->most_rows, 1000u);
}

TEST(Portion, OfAllRowsAndColumnsIsAWholeBlock) {
  const Portion portion{{{{.block = 0, .rows = 10, .columns = 6}}}};
  EXPECT_FALSE(portion.Of(Whole())[0].within);
}

TEST(Portion, TakesMemoryForWhatItHolds) {
  const Portion portion{{{{.block = 0, .first_row = 2, .rows = 3, .first_column = 1, .columns = 4}}}};
  constexpr std::uint64_t kBytes = 3 * 4 * sizeof(float);
  CountingMemory of_parameters, of_gradient, of_state;
  const Parameters parameters = Parameters::Create(portion.Of(Whole()), of_parameters).value();
  const Gradient gradient = Gradient::Dense(portion.Of(Whole()), of_gradient).value();
  const auto optimizer = Optimizer::Make({.kind = "adam", .schedule = {}}, of_state).value();
  ASSERT_TRUE(optimizer->Follow(parameters).ok());
  EXPECT_EQ(of_parameters.committed, kBytes);
  EXPECT_EQ(of_gradient.committed, 64u);  // a line of the cache
  EXPECT_EQ(of_state.committed, 2 * kBytes);
}

// Each works on its rows by the numbers of the whole's blocks, and all of them together do what one does.
TEST(Portion, UpdatesOfShardsAreThoseOfTheWhole) {
  HeapMemory memory;
  const std::vector<float> values = [] {
    std::vector<float> made;
    for (int i = 0; i < 60; ++i) made.push_back(static_cast<float>(i % 7) - 2.5f);
    return made;
  }();
  const auto updated = [&](const Portion& portion) {
    Parameters parameters = Parameters::Create(portion.Of(Whole()), memory).value();
    Gradient gradient = Gradient::Dense(portion.Of(Whole()), memory).value();
    const auto optimizer = Optimizer::Make({.kind = "adagrad", .schedule = {.rate = 0.1}}, memory).value();
    EXPECT_TRUE(optimizer->Follow(parameters).ok());
    const std::uint64_t first = parameters.block(0).within.value_or(Block::Within{}).first_row;
    const std::span<float> mine = gradient.blocks[0].memory();
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(first * 6), mine.size(), mine.begin());
    gradient.blocks[0].SetFull();
    optimizer->BeginStep();
    optimizer->Apply(parameters, gradient);
    return parameters.Gather(0);
  };
  const std::vector<float> whole = updated({});
  std::vector<float> joined = updated({{{{.block = 0, .rows = 4}}}});
  const std::vector<float> rest = updated({{{{.block = 0, .first_row = 4}}}});
  joined.insert(joined.end(), rest.begin(), rest.end());
  EXPECT_EQ(joined, whole);
}

}  // namespace
}  // namespace freshet::optimize
