#include <cmath>

#include "base/random.h"
#include "data/parse_testing.h"

namespace freshet::data {

extern const Format kVw;

namespace {

std::uint32_t IndexOf(std::string_view name_space, std::string_view feature, int bits = 18) {
  return static_cast<std::uint32_t>(base::Hash64(feature, base::Hash64(name_space))) & ((1u << bits) - 1);
}

struct Vw : Described {
  explicit Vw(int bits = 0) : Described{kVw} {
    options.bits = bits;
    EXPECT_TRUE(Describe("1 |a x\n-1 |a y\n").ok());
  }
  std::unique_ptr<Parser> Ready(bool labelled = true) { return Make("", labelled).value(); }
};

TEST(Vw, ReadsNamespacesScalesAndValues) {
  Vw vw;
  EXPECT_EQ(vw.description.bits, 18);
  const Rows rows = ParseText(*vw.Ready(), "1 |words:2 the:0.5 cat |n 7:-3 7 | plain\n-1 |\n");
  ASSERT_TRUE(rows.bad.empty()) << rows.bad[0].what;
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows.labels[0], 1);
  EXPECT_EQ(rows.labels[1], 0);
  const std::vector<std::uint32_t> indices(rows.indices.span().begin(), rows.indices.span().end());
  const std::vector<float> values(rows.values.span().begin(), rows.values.span().end());
  EXPECT_EQ(indices, (std::vector<std::uint32_t>{IndexOf("words", "the"), IndexOf("words", "cat"), IndexOf("n", "7"),
                                                 IndexOf("n", "7"), IndexOf("", "plain")}));
  EXPECT_EQ(values, (std::vector<float>{1, 2, -3, 1, 1}));
  EXPECT_EQ(rows.offsets[1], 5u);
  EXPECT_EQ(rows.offsets[2], 5u);
  EXPECT_TRUE(rows.weights.empty());
}

TEST(Vw, HashesToTheBitsAskedFor) {
  Vw vw(4);
  const Rows rows = ParseText(*vw.Ready(), "1 |a b\n");
  ASSERT_EQ(rows.indices.size(), 1u);
  EXPECT_EQ(rows.indices[0], IndexOf("a", "b", 4));
}

TEST(Vw, TakesImportanceAsWeightOfEveryRowOfTheChunk) {
  const Rows rows = ParseText(*Vw().Ready(), "1 |a x\n-1 0.5 |a x\n1 2 0.1 |a x\n1 |a x\n");
  ASSERT_TRUE(rows.bad.empty()) << rows.bad[0].what;
  EXPECT_EQ(std::vector<float>(rows.weights.span().begin(), rows.weights.span().end()),
            (std::vector<float>{1, 0.5, 2, 1}));
}

TEST(Vw, KeepsNoWeightsWhenAllAreOne) {
  EXPECT_TRUE(ParseText(*Vw().Ready(), "1 1 |a x\n-1 1.0 |a x\n").weights.empty());
}

TEST(Vw, SkipsTagsWhereverTheyMayStand) {
  const Rows rows = ParseText(*Vw().Ready(), "1 'tag|a x\n1 tag|a x\n1 2 0 'tag |a x\n1 '|a x\n");
  ASSERT_TRUE(rows.bad.empty()) << rows.bad[0].what;
  EXPECT_EQ(rows.size(), 4u);
}

TEST(Vw, AllowsRowsWithoutALabelOnlyWhenNoneIsNeeded) {
  Vw vw;
  const Rows rows = ParseText(*vw.Ready(false), "|a x\n'tag |a x\ntag|a x\n1 |a x\n");
  ASSERT_TRUE(rows.bad.empty()) << rows.bad[0].what;
  ASSERT_EQ(rows.size(), 4u);
  for (int r = 0; r < 3; ++r) EXPECT_TRUE(std::isnan(rows.labels[r]));
  EXPECT_EQ(rows.labels[3], 1);
}

TEST(Vw, TakesMixedLineEndsBlankLinesAndNoLastLineEnd) {
  const Rows rows = ParseText(*Vw().Ready(), "1 |a x\r\n\n  \t\n\r\n-1 |a x:2\n1 |a x:3\r\n1 |a x");
  ASSERT_TRUE(rows.bad.empty()) << rows.bad[0].what;
  EXPECT_EQ(rows.size(), 4u);
  for (const std::uint32_t index : rows.indices.span()) EXPECT_EQ(index, IndexOf("a", "x"));
}

TEST(Vw, SaysWhereAndWhatIsWrongWithARow) {
  Vw vw;
  const auto parser = vw.Ready();
  const std::string good = "1 |a x\n", long_number(400, '9');
  const Malformed table[] = {
      {"no bar", "1 a x\n", 0, 6, "expected a | before the features"},
      {"label cut off from its row", good + "1", 1, 2, "expected a |", 1},
      {"no label", good + "|a x\n", 1, 1, "no label before the |", 1},
      {"the label touches the bar", good + "1|a x\n", 1, 1, "found only the tag '1'", 1},
      {"label is no number", "one |a x\n", 0, 1, "found 'one', expected label"},
      {"label not among those known", "7 |a x\n", 0, 1, "label '7', expected one of -1, 1"},
      {"label not finite", "inf |a x\n", 0, 1, "label 'inf'"},
      {"overlong label", long_number + " |a x\n", 0, 1, "label '999"},
      {"negative importance", "1 -2 |a x\n", 0, 3, "importance '-2'"},
      {"importance beyond float", "1 1e99 |a x\n", 0, 3, "importance '1e99'"},
      {"four numbers", "1 2 3 4 |a x\n", 0, 7, "found '4', expected label [importance [base]]"},
      {"words after the tag", "1 'tag 2 |a x\n", 0, 8, "found '2' after the tag"},
      {"value is no number", "1 |a x:1 y:z w\n", 0, 12, "found 'z', expected a finite number"},
      {"value cut off", "1 |a x:\n", 0, 8, "found '', expected a finite number"},
      {"two values", "1 |a x:1:2\n", 0, 8, "found '1:2', expected a finite number"},
      {"huge value", "1 |a x:1e39\n", 0, 8, "found '1e39', expected a finite number"},
      {"overlong value", "1 |a x:" + long_number + "\n", 0, 8, "expected a finite number"},
      {"nan value", "1 |a x:nan\n", 0, 8, "found 'nan'"},
      {"huge after scaling", "1 |a:1e30 x:1e30\n", 0, 11, "found 'x:1e30', expected a finite number after the scale"},
      {"scale is no number", "1 |a:b x\n", 0, 6, "found 'b', expected a finite number"},
      {"feature without a name", "1 |a :1\n", 0, 6, "found ':1', expected feature[:value]"},
      {"NUL byte", good + std::string("1 |a x\0y\n", 9), 1, 7, "NUL byte", 1},
      {"the row before a bad one is left alone", good + "1 |a y z:q\n" + good, 1, 10, "found 'q'", 2},
      {"binary garbage", "\x01\xff\x7f\x80\xfe", 0, 6, "expected a |"},
      {"line ends in the middle", "1 |a x:1\ry\r\n", 0, 8, "expected a finite number"},
  };
  for (const Malformed& malformed : table) ExpectBadRow(*parser, malformed);
}

TEST(Vw, LeavesNoTraceOfABadRowInTheWeights) {
  const Rows rows = ParseText(*Vw().Ready(), "1 2 |a x\n1 3 |a x:z\n1 4 |a x\n");
  EXPECT_EQ(rows.bad.size(), 1u);
  EXPECT_EQ(std::vector<float>(rows.weights.span().begin(), rows.weights.span().end()), (std::vector<float>{2, 4}));
}

TEST(Vw, ReadsNothingFromNothing) {
  for (const char* text : {"", "\n", "\r\n \n\n"}) {
    const Rows rows = ParseText(*Vw().Ready(), text);
    EXPECT_EQ(rows.size(), 0u);
    EXPECT_TRUE(rows.bad.empty());
  }
}

TEST(Vw, SurvivesGarbage) {
  Vw vw;
  const auto parser = vw.Ready();
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    std::string text = Garbage(seed, seed * 7);
    for (std::size_t i = seed % 5; i < text.size(); i += 5) text[i] = "1 |:x\n"[i % 6];
    const Rows rows = ParseText(*parser, text);
    EXPECT_LE(rows.size() + rows.bad.size(), LinesIn(text));
    EXPECT_EQ(rows.offsets.back(), rows.indices.size());
  }
}

TEST(Vw, IsToldFromOtherFormats) {
  for (const char* text :
       {"1 |a b\n", "1 2 'tag |a b\n", "-1 tag|a b:1 |c\n", "|a b c\n", "'x |a b\n", "\n0.5 | 1:2 3\r\n"})
    EXPECT_TRUE(kVw.looks_like(TestHead(text))) << text;
  for (const char* text :
       {"", "\n\n", "1 1:2 2:3\n", "1|2|3\n4|5|6\n", "a,b|c\n", "name|age\nx|3\n", "|a|b|\n", "1 |a\nno bar\n"})
    EXPECT_FALSE(kVw.looks_like(TestHead(text))) << text;
  EXPECT_FALSE(kVw.looks_like(TestHead(std::string_view("1 |a \0b\n", 8))));
}

TEST(Vw, SettlesLabelsFromTheHead) {
  Described real{kVw};
  ASSERT_TRUE(real.Describe("0.5 |a x\n1.5 |a x\n2 |a x\n").ok());
  EXPECT_EQ(real.description.labels.kind, Labels::Kind::kReal);
  Described unlabelled{kVw};
  const auto result = unlabelled.Describe("|a x\n|a y\n");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Code::kBadInput);
}

TEST(Vw, RefusesMoreBitsThanAnIndexHas) {
  Described vw{kVw};
  vw.options.bits = 32;
  const auto result = vw.Describe("1 |a x\n-1 |a x\n");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Code::kInvalid);
}

}  // namespace
}  // namespace freshet::data
