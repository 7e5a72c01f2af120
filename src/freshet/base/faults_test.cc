#include "base/faults.h"

#include <gtest/gtest.h>

#include <csignal>

namespace freshet::base {
namespace {

TEST(Faults, StrikeAtTheNthVisitAndOnlyThen) {
  Faults faults;
  ASSERT_TRUE(faults.Arm("checkpoint.save:3:error").ok());
  for (int visit = 1; visit <= 6; ++visit) {
    SCOPED_TRACE(Str("visit ", visit));
    EXPECT_TRUE(faults.Hit("elsewhere").ok());
    const auto hit = faults.Hit("checkpoint.save");
    ASSERT_EQ(hit.ok(), visit != 3);
    if (!hit.ok()) {
      EXPECT_EQ(hit.error().code, Code::kIo);
      EXPECT_EQ(hit.error().text, "injected fault at checkpoint.save");
    }
  }
}

TEST(Faults, RefuseWhatDoesNotReadLikeAFault) {
  Faults faults;
  for (const char* const wrong : {"", "a", "a:1", "a:1:explode", "a:0:error", "a:-1:error", "a:x:error", "a:2x:error",
                                  "a::error", "a:1:error:b"}) {
    SCOPED_TRACE(wrong);
    const auto result = faults.Arm(wrong);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, Code::kInvalid);
    EXPECT_NE(result.error().text.find("expected place:nth:error"), std::string::npos);
  }
  EXPECT_TRUE(faults.Hit("a").ok());
}

TEST(FaultsDeathTest, KillEndsTheProcessOnTheSpot) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  Faults faults;
  ASSERT_TRUE(faults.Arm("a:1:kill").ok());
  EXPECT_EXIT((void)faults.Hit("a"), testing::KilledBySignal(SIGKILL), "");
}

}  // namespace
}  // namespace freshet::base
