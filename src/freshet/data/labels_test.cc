#include "data/labels.h"

#include <gtest/gtest.h>

namespace freshet::data {
namespace {

Labels Settled(const std::vector<std::string>& seen, Labels::Kind kind = Labels::Kind::kAuto) {
  Labels labels;
  labels.kind = kind;
  const auto result = labels.Settle(seen);
  EXPECT_TRUE(result.ok()) << result.error().text;
  return labels;
}

TEST(Labels, AreWhatTheHeadSuggests) {
  using Names = std::vector<std::string>;
  const struct {
    Names seen;
    Labels::Kind kind;
    Names names;
  } table[] = {
      {{"1", "-1", "+1", "1.0"}, Labels::Kind::kBinary, {"-1", "1"}},
      {{"yes", "no"}, Labels::Kind::kBinary, {"no", "yes"}},
      {{"1"}, Labels::Kind::kBinary, {"-1", "1"}},
      {{"-1"}, Labels::Kind::kBinary, {"-1", "1"}},
      {{"0"}, Labels::Kind::kBinary, {"0", "1"}},
      {{"10", "9", "8"}, Labels::Kind::kClasses, {"8", "9", "10"}},
      {{"c", "a", "b"}, Labels::Kind::kClasses, {"a", "b", "c"}},
      {{"1", "x", "2"}, Labels::Kind::kClasses, {"1", "2", "x"}},
      {{"1.5", "2", "3"}, Labels::Kind::kReal, {}},
      {{"1", "2", "nan", "inf"}, Labels::Kind::kBinary, {"1", "2"}},
  };
  for (const auto& [seen, kind, names] : table) {
    SCOPED_TRACE(Join(seen, " "));
    const Labels labels = Settled(seen);
    EXPECT_EQ(labels.kind, kind);
    EXPECT_EQ(labels.names, names);
  }
}

TEST(Labels, AreRealWhenThereAreTooManyWholeNumbers) {
  std::vector<std::string> seen;
  for (int i = 0; i < 101; ++i) seen.push_back(Str(i));
  EXPECT_EQ(Settled(seen).kind, Labels::Kind::kReal);
  seen.pop_back();
  EXPECT_EQ(Settled(seen).kind, Labels::Kind::kClasses);
}

TEST(Labels, MapNumbersAsNumbersAndTextAsText) {
  const Labels binary = Settled({"1", "-1"});
  EXPECT_EQ(binary.Map("+1.00"), 1);
  EXPECT_EQ(binary.Map(-1.0), 0);
  EXPECT_EQ(binary.Map(2.0), Labels::kUnknown);
  EXPECT_EQ(binary.Map("one"), Labels::kUnknown);
  const Labels classes = Settled({"b", "1", "a"});
  EXPECT_EQ(classes.Map("1.0"), 0);
  EXPECT_EQ(classes.Map("a"), 1);
  EXPECT_EQ(classes.Map("b"), 2);
  EXPECT_EQ(classes.classes(), 3u);
  const Labels real = Settled({"x"}, Labels::Kind::kReal);
  EXPECT_EQ(real.Map(2.5), 2.5f);
  EXPECT_EQ(real.Map("2.5"), 2.5f);
  EXPECT_EQ(real.Map("x"), Labels::kUnknown);
}

TEST(Labels, SetOneClassAgainstTheRest) {
  for (const char* positive : {"2", "+2.0"}) {
    Labels labels;
    labels.positive = positive;
    ASSERT_TRUE(labels.Settle({"1", "2", "3", "x"}).ok());
    EXPECT_EQ(labels.kind, Labels::Kind::kBinary);
    EXPECT_EQ(labels.names, (std::vector<std::string>{"rest", "2"}));
    EXPECT_EQ(labels.Map(2.0), 1);
    EXPECT_EQ(labels.Map(7.0), 0);
    EXPECT_EQ(labels.Map("x"), 0);
  }
}

TEST(Labels, KeepTheOrderTheyAreGivenIn) {
  Labels labels;
  labels.names = {"2.0", "1", "x"};
  ASSERT_TRUE(labels.Settle({"1", "2", "x"}).ok());
  EXPECT_EQ(labels.Map(2.0), 0);
  EXPECT_EQ(labels.Map(1.0), 1);
  EXPECT_EQ(labels.Map("x"), 2);
}

TEST(Labels, RefuseNamesThatStandTwice) {
  Labels labels;
  labels.names = {"1", "2", "1.0"};
  const auto result = labels.Settle({"1", "2"});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Code::kInvalid);
}

TEST(Labels, NeedTwoValuesForATwoClassLoss) {
  for (const std::vector<std::string>& seen : {std::vector<std::string>{"1", "2", "3"}, {"7"}, {}}) {
    Labels labels;
    labels.kind = Labels::Kind::kBinary;
    const auto result = labels.Settle(seen);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, Code::kBadInput);
    EXPECT_NE(result.error().text.find(Str("found ", seen.size())), std::string::npos) << result.error().text;
  }
}

TEST(Labels, SayWhatIsExpectedWithoutEnd) {
  EXPECT_EQ(Settled({"1", "-1"}).Expected(), "one of -1, 1");
  EXPECT_EQ(Settled({}, Labels::Kind::kReal).Expected(), "a number");
  std::vector<std::string> many;
  for (int i = 0; i < 50; ++i) many.push_back(Str(i));
  EXPECT_EQ(Settled(many).Expected(), "one of 0, 1, 2, 3, 4, 5, 6, 7, …");
}

}  // namespace
}  // namespace freshet::data
