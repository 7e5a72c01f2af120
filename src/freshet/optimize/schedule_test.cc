#include "optimize/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace freshet::optimize {
namespace {

TEST(Schedule, FollowsItsFormula) {
  EXPECT_DOUBLE_EQ((Schedule{"constant", 0.5}).At(1000, 0.7), 0.5);
  EXPECT_DOUBLE_EQ((Schedule{"inverse", 0.5, 0.01}).At(100, 0), 0.25);
  EXPECT_DOUBLE_EQ((Schedule{"sqrt", 0.5, 0.03}).At(100, 0), 0.25);
  EXPECT_DOUBLE_EQ((Schedule{"cosine", 0.5}).At(0, 0), 0.5);
  EXPECT_DOUBLE_EQ((Schedule{"cosine", 0.5}).At(0, 0.5), 0.25);
  EXPECT_NEAR((Schedule{"cosine", 0.5}).At(0, 1), 0, 1e-15);
  EXPECT_DOUBLE_EQ((Schedule{"linear", 0.5}).At(0, 0.25), 0.375);
}

TEST(Schedule, WarmsUpLinearlyAndReachesTheFullRate) {
  for (const std::string& kind : Schedule::Kinds()) {
    SCOPED_TRACE(kind);
    const Schedule schedule{kind, 1, 0, 10};
    for (std::uint64_t step = 0; step < 10; ++step)
      EXPECT_NEAR(schedule.At(step, 0), (static_cast<double>(step) + 1) / 10, 1e-12);
    EXPECT_DOUBLE_EQ(schedule.At(10, 0), 1);
    EXPECT_DOUBLE_EQ(schedule.At(1000, 0), 1);
  }
}

TEST(Schedule, NeverRisesAfterWarmUpNorFallsBelowZero) {
  for (const std::string& kind : Schedule::Kinds()) {
    SCOPED_TRACE(kind);
    const Schedule schedule{kind, 0.3, 0.01};
    double last = 1;
    for (std::uint64_t step = 0; step <= 1000; ++step) {
      const double rate = schedule.At(step, static_cast<double>(step) / 1000);
      ASSERT_LE(rate, last);
      ASSERT_GE(rate, 0);
      last = rate;
    }
    EXPECT_GE(schedule.At(0, 7.5), 0);  // progress beyond the plan
  }
}

TEST(Schedule, ValidatesWhatItIsTold) {
  EXPECT_TRUE(Schedule{}.Validate().ok());
  const auto unknown = Schedule{"weekly", 1}.Validate();
  EXPECT_EQ(unknown.error().code, Code::kInvalid);
  EXPECT_NE(unknown.error().text.find("constant, inverse, sqrt, cosine, linear"), std::string::npos);
  EXPECT_FALSE((Schedule{"constant", 0}).Validate().ok());
  EXPECT_FALSE((Schedule{"constant", -1}).Validate().ok());
  EXPECT_FALSE((Schedule{"constant", std::nan("")}).Validate().ok());
  EXPECT_FALSE((Schedule{"inverse", 1, -1}).Validate().ok());
}

}  // namespace
}  // namespace freshet::optimize
