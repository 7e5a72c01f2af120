#include "base/result.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace freshet {
namespace {

Result<int> Half(int number) {
  if (number % 2 != 0) return Error{Code::kInvalid, Str(number, " is odd")};
  return number / 2;
}

Result<int> Quarter(int number) {
  const int half = TRY(Half(number));
  return TRY(Half(half));
}

Result<void> CheckEven(int number) {
  TRY(Half(number));
  return {};
}

Result<std::unique_ptr<int>> Boxed(int number) { return std::make_unique<int>(number); }

Result<int> SumOfNestedTries(int number) { return TRY(Half(TRY(Half(number)))) + TRY(Quarter(number)); }

TEST(Result, HoldsAValueOrAnError) {
  EXPECT_EQ(Half(8).value(), 4);
  const auto failed = Half(7);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, Code::kInvalid);
  EXPECT_EQ(failed.error().text, "7 is odd");
}

TEST(Result, TryGivesTheValueOrReturnsTheErrorToTheCaller) {
  EXPECT_EQ(Quarter(12).value(), 3);
  EXPECT_EQ(Quarter(7).error().text, "7 is odd");
  EXPECT_EQ(Quarter(6).error().text, "3 is odd");
  EXPECT_TRUE(CheckEven(2).ok());
  EXPECT_EQ(CheckEven(3).error().text, "3 is odd");
}

TEST(Result, TryNestsWithinOneExpression) {
  EXPECT_EQ(SumOfNestedTries(16).value(), 8);
  EXPECT_EQ(SumOfNestedTries(6).error().text, "3 is odd");
}

TEST(Result, TryMovesValuesThatCannotBeCopied) {
  const auto twice = [](int number) -> Result<int> {
    const auto box = TRY(Boxed(number));
    return *box * 2;
  };
  EXPECT_EQ(twice(21).value(), 42);
}

TEST(Result, WhileAddsContextAfterTheFirstCauseAndKeepsTheCode) {
  auto failed = Half(7).While("halving").While("cutting a cake");
  EXPECT_EQ(failed.error().code, Code::kInvalid);
  EXPECT_EQ(failed.error().text, "7 is odd; while halving; while cutting a cake");
  EXPECT_EQ(Half(8).While("halving").value(), 4);
  EXPECT_EQ(CheckEven(3).While("checking").error().text, "3 is odd; while checking");
  EXPECT_TRUE(CheckEven(4).While("checking").ok());
}

TEST(Result, EveryCodeHasANameOfItsOwn) {
  std::vector<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(Code::kStopped); ++code) {
    const std::string_view name = Name(static_cast<Code>(code));
    EXPECT_NE(name, "unknown");
    EXPECT_EQ(std::find(names.begin(), names.end(), name), names.end()) << name;
    names.push_back(name);
  }
}

TEST(ResultDeathTest, TakingTheValueOfAnErrorAbortsWithThePlace) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH((void)Half(7).value(), "result.h:[0-9]+: CHECK failed");
}

}  // namespace
}  // namespace freshet
