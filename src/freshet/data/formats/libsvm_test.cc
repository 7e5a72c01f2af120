#include <cmath>

#include "base/option.h"
#include "data/parse_testing.h"
#include "data/world_testing.h"

namespace freshet::data {

extern const Format kLibsvm;

namespace {

using namespace std::string_literals;

struct Libsvm : Described {
  explicit Libsvm(int bits = 0, std::string_view head = "1 1:1\n-1 2:1\n") : Described{kLibsvm} {
    options.bits = bits;
    const auto result = Describe(head);
    EXPECT_TRUE(result.ok());
  }
  std::unique_ptr<Parser> Ready(bool labelled = true) { return Make("", labelled).value(); }
};

template <class T>
std::vector<T> Copy(const Buffer<T>& buffer) {
  return {buffer.span().begin(), buffer.span().end()};
}

TEST(Libsvm, ReadsRowsInAllTheirForms) {
  Libsvm libsvm;
  const Rows rows = ParseText(*libsvm.Ready(),
                              "+1 1:0.5 3:-2e1 10:1\n"
                              "-1\n"
                              "# a comment\n"
                              "\n"
                              "1.0\tqid:7 2:3\t 4:5   # with a comment\n"
                              "  -1   5:1  \r\n"
                              "1 # nothing but this\r\n"
                              "1 7:.5");
  ASSERT_TRUE(rows.bad.empty()) << rows.bad[0].what;
  EXPECT_EQ(Copy(rows.labels), (std::vector<float>{1, 0, 1, 0, 1, 1}));
  EXPECT_EQ(Copy(rows.offsets), (std::vector<std::uint32_t>{0, 3, 3, 5, 6, 6, 7}));
  EXPECT_EQ(Copy(rows.indices), (std::vector<std::uint32_t>{0, 2, 9, 1, 3, 4, 6}));
  EXPECT_EQ(Copy(rows.values), (std::vector<float>{0.5, -20, 1, 3, 5, 1, 0.5}));
  EXPECT_EQ(rows.width, 0u);
}

TEST(Libsvm, CountsFromZeroWhereTheHeadDoes) {
  Libsvm libsvm(0, "1 0:1 2:1\n-1 1:1\n");
  EXPECT_EQ(libsvm.description.index_base, 0);
  EXPECT_EQ(Copy(ParseText(*libsvm.Ready(), "1 0:1 5:1\n").indices), (std::vector<std::uint32_t>{0, 5}));
  Libsvm from_one;
  EXPECT_EQ(from_one.description.index_base, 1);
}

TEST(Libsvm, HashesIndicesOfAnySize) {
  Libsvm libsvm(10);
  const Rows rows = ParseText(*libsvm.Ready(), "1 1:1 9999999999999999999:2\n");
  ASSERT_EQ(rows.indices.size(), 2u);
  EXPECT_EQ(rows.indices[1], base::Hash64(std::uint64_t{9999999999999999999u}) & 1023);
}

TEST(Libsvm, RoundTripsRandomRows) {
  Libsvm libsvm(0, "1.5 1:1\n2.5 1:1\n3.5 1:1\n");
  const auto parser = libsvm.Ready();
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "libsvm");
    std::string text;
    std::vector<float> labels, values;
    std::vector<std::uint32_t> indices, offsets = {0};
    for (std::uint64_t r = random.Below(20); r > 0; --r) {
      labels.push_back(static_cast<float>(random.Normal()));
      text += Str(labels.back());
      std::uint32_t index = 0;
      for (std::uint64_t e = random.Below(12); e > 0; --e) {
        index += 1 + static_cast<std::uint32_t>(random.Below(random.Below(2) ? 3 : 1'000'000));
        const double exact = random.Below(2) ? static_cast<double>(random.Below(12)) : random.Normal() * 1000;
        indices.push_back(index - 1);
        values.push_back(static_cast<float>(exact));
        text += Str(random.Below(9) == 0 ? "\t" : " ", index, ":", values.back());
      }
      offsets.push_back(static_cast<std::uint32_t>(indices.size()));
      text += random.Below(4) == 0 ? " \r\n" : "\n";
    }
    if (random.Below(2) == 0 && text.ends_with("\n")) text.pop_back();
    const Rows rows = ParseText(*parser, text);
    ASSERT_TRUE(rows.bad.empty()) << rows.bad[0].what;
    ASSERT_EQ(Copy(rows.labels), labels);
    ASSERT_EQ(Copy(rows.offsets), offsets);
    ASSERT_EQ(Copy(rows.indices), indices);
    ASSERT_EQ(Copy(rows.values), values);
  }
}

TEST(Libsvm, NeedsNoLabelWhenNoneIsNeeded) {
  Libsvm libsvm;
  const Rows rows = ParseText(*libsvm.Ready(false), "1 1:1\n7 2:1\n3:1 4:1\n");
  ASSERT_TRUE(rows.bad.empty()) << rows.bad[0].what;
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows.labels[0], 1);
  EXPECT_TRUE(std::isnan(rows.labels[1])) << "a label that is not known counts as none";
  EXPECT_TRUE(std::isnan(rows.labels[2]));
  EXPECT_EQ(Copy(rows.indices), (std::vector<std::uint32_t>{0, 1, 2, 3}));
}

TEST(Libsvm, SaysWhereAndWhatIsWrongWithAFile) {
  World world;
  const std::string good = "1 1:0.5 7:2\n-1 2:1\n", longest(400, '9');
  const auto no_number = [](const std::string& found) {
    return Str("found ", Quoted(found), ", expected a finite number");
  };
  const std::string no_label = ", expected a label (one of -1, 1) and a blank";
  const MalformedFile table[] = {
      {"empty", "", "1:1", "found an empty file, expected rows of data", MalformedFile::kNone},
      {"only blank lines", "\n \n\r\n", "1:1", "found only comments and blank lines, expected label index:value …",
       MalformedFile::kNone},
      {"only comments", "# a\n  # 1 1:2\n", "1:1", "found only comments and blank lines, expected label index:value …",
       MalformedFile::kNone},
      {"cut off inside a value", good + "1 3:", "3:5", no_number(""), 2},
      {"cut off inside an index", good + "1 3", "3:3", "found '3', expected index:value", 2},
      {"cut off inside a label", good + "-", "3:1", "found '-'" + no_label, 2},
      {"label is no number", good + "one 1:1\n", "3:1", "found 'one'" + no_label, 2},
      {"no label", good + "1:1 2:1\n", "3:1", "found '1:1'" + no_label, 2},
      {"label is not known", good + "2 1:1\n" + good, "3:1", "label '2', expected one of -1, 1", 4},
      {"label is not finite", good + "nan 1:1\n", "3:1", "label 'nan', expected one of -1, 1", 2},
      {"overlong label", good + longest + " 1:1\n", "3:1", "label " + Quoted(longest) + ", expected one of -1, 1", 2},
      {"NUL byte in a row", good + "1 1:1\0 2:1\n"s, "3:5", no_number("1\0"s), 2},
      {"NUL byte in the label", good + "\0 1:1\n"s, "3:1", "found '\\x00'" + no_label, 2},
      {"overlong index", good + "1 " + longest + ":1\n", "3:3",
       "found " + Quoted(longest + ":1") + ", expected index:value", 2},
      {"overlong value", good + "1 1:" + longest + "\n", "3:5", no_number(longest), 2},
      {"value beyond float", good + "1 1:1e39\n", "3:5", no_number("1e39"), 2},
      {"value is not finite", good + "1 1:inf 2:1\n", "3:5", no_number("inf"), 2},
      {"value is no number", good + "1 1:x 2:1\n", "3:5", no_number("x"), 2},
      {"half a number", good + "1 1:1x 2:1\n", "3:5", no_number("1x"), 2},
      {"indices out of order", good + "1 5:1 3:1\n", "3:7", "index 3 after index 5, expected ascending order", 2},
      {"repeated index", good + "1 5:1 5:1\n", "3:7", "index 5 stands twice in the row, expected each once", 2},
      {"index zero", good + "1 0:1\n", "3:3",
       Str("index 0 where features count from 1, use ", Option("index-base"), " 0 if they count from 0"), 2},
      {"huge index", good + "1 268435457:1\n", "3:3",
       Str("index 268435457 is too large for a model with one weight each (most 268435456), hash the features with ",
           Option("bits")),
       2},
      {"negative index", good + "1 -3:1\n", "3:3", "found '-3:1', expected index:value", 2},
      {"a word", good + "1 1:1 word 2:1\n", "3:7", "found 'word', expected index:value", 2},
      {"two colons", good + "1 1:2:3\n", "3:5", no_number("2:3"), 2},
      {"line ends of three kinds", "1 1:1\r\n-1 1:2\n1 1:3\r-1 1:4\n", "3:5", no_number("3"), 2},
      {"binary garbage", good + "\x01\xff\x7f\x80\xfe", "3:1", "found '\\x01\xff\\x7f\x80\xfe'" + no_label, 2},
      {"the mistake is in the middle", good + "1 1:1 x\n" + good, "3:7", "found 'x', expected index:value", 4},
  };
  InputOptions input;
  input.format = "libsvm";
  input.classes = {"-1", "1"};
  input.index_base = 1;
  for (const MalformedFile& malformed : table) ExpectMalformed(world, malformed, input);
}

TEST(Libsvm, SurvivesGarbage) {
  for (const int bits : {0, 5}) {
    Libsvm libsvm(bits);
    const auto parser = libsvm.Ready();
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      SCOPED_TRACE(Str("seed ", seed));
      std::string text = Garbage(seed, seed * 5);
      for (std::size_t i = 0; i < text.size(); ++i)
        if (base::Hash64(seed + i) % 8 != 0) text[i] = "1 2:3 45:0.6\r\n#qid:"[base::Hash64(i ^ seed << 20) % 19];
      const Rows rows = ParseText(*parser, text);
      ASSERT_LE(rows.size() + rows.bad.size(), LinesIn(text));
      ASSERT_EQ(rows.offsets.size(), rows.size() + 1);
      ASSERT_EQ(rows.offsets.back(), rows.indices.size());
      ASSERT_EQ(rows.indices.size(), rows.values.size());
    }
  }
}

TEST(Libsvm, IsToldFromOtherFormats) {
  for (const char* text : {"1 1:2\n", "+1 3:1 4:1\n", "# comment\n\n-1 qid:3 1:0.5\n", "0.5\t10:1\n", "1\n0\n1 1:1\n"})
    EXPECT_TRUE(kLibsvm.looks_like(TestHead(text))) << text;
  for (const char* text :
       {"", "#\n", "1,2,3\n", "1 |a b\n", "1::2::3\n", "a 1:2\n", "1 a:2\n", "1 2 3\n", "1 :2\n", "1 1:\n"})
    EXPECT_FALSE(kLibsvm.looks_like(TestHead(text))) << text;
}

}  // namespace
}  // namespace freshet::data
