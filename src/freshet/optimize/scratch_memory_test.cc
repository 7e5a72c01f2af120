#include "optimize/scratch_memory.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/scratch_testing.h"
#include "optimize/parameters.h"

namespace freshet::optimize {
namespace {

TEST(ScratchMemory, HoldsParametersAsMemoryDoes) {
  const base::ScratchDirectory directory;
  ScratchMemory memory(directory.path());
  Parameters parameters =
      Parameters::Create({{"weights", 0, 3, 1 << 20}, {"bias", 1, 2}, {"empty", 0, 1, 10}}, memory).value();
  ASSERT_TRUE(parameters.Grow(0, 5).ok());
  EXPECT_EQ(parameters.Row(0, 4)[2], 0);
  for (std::uint64_t row = 0; row < 5; ++row) parameters.Row(0, row)[1] = static_cast<float>(row);
  parameters.Row(1, 0)[1] = 7;
  ASSERT_TRUE(parameters.Grow(0, 100'000).ok());
  EXPECT_EQ(parameters.Row(0, 4)[1], 4);
  EXPECT_EQ(parameters.Row(0, 99'999)[2], 0);
  EXPECT_EQ(parameters.Row(1, 0)[1], 7);
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));  // nobody has to clean up
}

// As of a rule that remembers nothing.
TEST(ScratchMemory, HoldsNothingOfRowsWithoutNumbers) {
  const base::ScratchDirectory directory;
  ScratchMemory memory(directory.path());
  Parameters nothing = Parameters::Create({{"state", 3, 0, 100}}, memory).value();
  EXPECT_TRUE(nothing.Grow(0, 50).ok());
  Parameters behind = Parameters::Create({{"weights", 3, 1, 100}, {"state", 3, 0, 100}}, memory).value();
  EXPECT_TRUE(behind.Grow(1, 100).ok());
  EXPECT_EQ(behind.rows(1), 100u);
}

TEST(ScratchMemory, HasNothingToGiveWhereThereIsNoDirectory) {
  ScratchMemory memory("/nowhere/at/all");
  const auto refused = Parameters::Create({{"weights", 4, 3}}, memory);
  ASSERT_FALSE(refused.ok());
}

}  // namespace
}  // namespace freshet::optimize
