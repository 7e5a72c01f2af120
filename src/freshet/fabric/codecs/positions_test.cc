#include "fabric/codecs/positions.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace freshet::fabric {
namespace {

std::vector<std::uint32_t> SomeOf(base::Random& random, std::size_t range, double share) {
  std::vector<std::uint32_t> positions;
  for (std::size_t i = 0; i < range; ++i)
    if (random.Uniform() < share) positions.push_back(static_cast<std::uint32_t>(i));
  return positions;
}

TEST(Positions, ComeBackAsTheyWereWhateverTheirNumber) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "positions");
    const std::size_t range = random.Below(2) == 0 ? random.Below(20) : random.Below(5000);
    for (const double share : {0.0, 0.001, 0.05, 0.5, 0.95, 0.999, 1.0}) {
      const std::vector<std::uint32_t> positions = SomeOf(random, range, share);
      std::vector<std::byte> bytes;
      AppendPositions(positions, range, bytes);
      ASSERT_LE(bytes.size(), 4 + (range + 7) / 8);
      bytes.resize(bytes.size() + positions.size(), std::byte{0xab});
      std::span<const std::byte> rest = bytes;
      std::vector<std::uint32_t> back;
      ASSERT_TRUE(TakePositions(rest, range, 1, back).ok());
      ASSERT_EQ(back, positions);
      ASSERT_EQ(rest.size(), positions.size());
    }
  }
}

TEST(Positions, AllButAFewCostAsLittleAsAFew) {
  std::vector<std::uint32_t> all_but_one;
  for (std::uint32_t i = 0; i < 100000; ++i)
    if (i != 777) all_but_one.push_back(i);
  std::vector<std::byte> bytes;
  AppendPositions(all_but_one, 100000, bytes);
  EXPECT_LE(bytes.size(), 6u);
}

TEST(Positions, ACountThatTheBytesCannotHoldIsRefusedBeforeMemoryIsTaken) {
  for (const int form : {0, 1, 2, 3}) {
    const std::vector<std::byte> bytes = {static_cast<std::byte>(form),
                                          std::byte{0xff},
                                          std::byte{0xff},
                                          std::byte{0xff},
                                          std::byte{0xff},
                                          std::byte{0x0f}};
    std::span<const std::byte> rest = bytes;
    std::vector<std::uint32_t> positions;
    const auto result = TakePositions(rest, UINT32_MAX, 4, positions);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, Code::kCorrupt);
    EXPECT_EQ(positions.capacity(), 0u);
  }
}

TEST(Positions, NumbersOfMoreThan32BitsAndPositionsBeyondTheRangeAreRefused) {
  const auto refused = [](std::vector<int> numbers, std::size_t range) {
    std::vector<std::byte> bytes;
    for (const int number : numbers) bytes.push_back(static_cast<std::byte>(number));
    std::span<const std::byte> rest = bytes;
    std::vector<std::uint32_t> positions;
    return !TakePositions(rest, range, 0, positions).ok();
  };
  EXPECT_TRUE(refused({0, 0xff, 0xff, 0xff, 0xff, 0x1f}, 1u << 31));
  EXPECT_TRUE(refused({0, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, 1u << 31));
  EXPECT_TRUE(refused({0, 1, 10}, 10));
  EXPECT_TRUE(refused({0, 2, 8, 1}, 10));
  EXPECT_FALSE(refused({0, 2, 8, 0}, 10));
  EXPECT_TRUE(refused({1, 1, 0, 4}, 10));  // bit 10
  EXPECT_TRUE(refused({1, 2, 1, 0}, 10));  // one bit of two
  EXPECT_FALSE(refused({1, 1, 0, 2}, 10));
  EXPECT_TRUE(refused({2, 9, 10}, 10));
  EXPECT_FALSE(refused({2, 9, 9}, 10));
  EXPECT_TRUE(refused({7, 0}, 10));
}

}  // namespace
}  // namespace freshet::fabric
