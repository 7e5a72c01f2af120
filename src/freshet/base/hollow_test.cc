#include "base/hollow.h"

#include <gtest/gtest.h>

#include <vector>

namespace freshet::base {
namespace {

TEST(Hollow, IsKnownByItsAddressAndNothingElseIs) {
  const std::vector<float> real(1000);
  EXPECT_FALSE(IsHollow(real));
  EXPECT_FALSE(IsHollow(nullptr));
  const std::span<float> values = HollowFloats(std::size_t{1} << 30);
  EXPECT_TRUE(IsHollow(values));
  EXPECT_TRUE(IsHollow(&values.back()));
  EXPECT_TRUE(IsHollow(HollowBytes(5).data()));
  EXPECT_FALSE(IsHollow(real));
  EXPECT_FALSE(IsHollow(nullptr));
  EXPECT_FALSE(IsHollow(static_cast<std::byte*>(Hollow()) + kMostHollowBytes));
  EXPECT_FALSE(IsHollow(static_cast<std::byte*>(Hollow()) - 1));
}

TEST(HollowDeath, WhoeverTouchesItIsStopped) {
  volatile float* const value = HollowFloats(1).data();
  EXPECT_DEATH(*value = 1, "");
}

}  // namespace
}  // namespace freshet::base
