#include "fabric/collectives/factors.h"

#include <gtest/gtest.h>

#include "fabric/codecs/codec_testing.h"
#include "fabric/threads/threads_testing.h"

namespace freshet::fabric {
namespace {

TEST(Factors, EveryMemberGetsThoseOfAllInTheOrderOfRanks) {
  for (int size = 1; size <= 9; ++size)
    RunMembers(size, [&](Fabric& fabric) {
      const auto rank = static_cast<std::uint64_t>(fabric.rank());
      const auto examples = [](std::uint64_t r) { return r == 1 ? 0 : 3 + r; };  // one has none
      const auto inputs = [&](std::uint64_t r) { return GradientLike(r, examples(r) * 5); };
      const auto deltas = [&](std::uint64_t r) { return GradientLike(r + 50, examples(r) * 2); };
      const auto all = GatherFactors(fabric, 4, inputs(rank), 5, deltas(rank), 2);
      ASSERT_TRUE(all.ok()) << all.error().text;
      ASSERT_EQ(all.value().size(), static_cast<std::size_t>(size));
      for (std::uint64_t r = 0; r < all.value().size(); ++r) {
        ASSERT_EQ(all.value()[r].examples, examples(r));
        ASSERT_EQ(all.value()[r].inputs, inputs(r));
        ASSERT_EQ(all.value()[r].deltas, deltas(r));
      }
    });
}

TEST(Factors, PayForWideLayersAndSmallBatchesOfFewMembers) {
  EXPECT_TRUE(FactorsPay(2, 32, 4096, 9216));
  EXPECT_TRUE(FactorsPay(8, 128, 4096, 9216));
  EXPECT_FALSE(FactorsPay(8, 1024, 4096, 9216));
  EXPECT_FALSE(FactorsPay(4, 64, 10, 128));
  EXPECT_FALSE(FactorsPay(1, 1, 4096, 4096));  // nothing travels either way
  EXPECT_FALSE(FactorsPay(4, 5, 20, 20));      // 3·5·40 = 600 floats against 2·3/4·400 = 600
  EXPECT_TRUE(FactorsPay(4, 4, 20, 20));
}

TEST(Factors, MembersThatDisagreeOnTheLayerAreToldSo) {
  std::vector<bool> ok(2);
  std::vector<std::string> texts(2);
  RunMembers(2, [&](Fabric& fabric) {
    const auto r = static_cast<std::size_t>(fabric.rank());
    const std::vector<float> inputs(r == 0 ? 3 : 4), deltas(2);
    const auto all = GatherFactors(fabric, 4, inputs, inputs.size(), deltas, deltas.size());
    EXPECT_FALSE(all.ok());
    if (!all.ok()) texts[r] = all.error().text;
  });
  EXPECT_NE((texts[0] + texts[1]).find("same model"), std::string::npos);
}

}  // namespace
}  // namespace freshet::fabric
