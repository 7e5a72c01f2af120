#include <cmath>

#include "data/parse_testing.h"

namespace freshet::data {

extern const Format kRatings;

namespace {

constexpr const char* kDat = "1::1193::5::978300760\n1::661::3::978302109\n";

struct Ratings : Described {
  explicit Ratings(std::string_view head) : Described{kRatings} {
    const auto result = Describe(head);
    EXPECT_TRUE(result.ok()) << result.error().text;
  }
};

std::string Name(const Rows& rows, std::size_t token) {
  return std::string(rows.text.data() + rows.tokens[token].begin, rows.tokens[token].size);
}

TEST(Ratings, ReadsEveryWayMovieLensWritesThem) {
  const std::pair<const char*, const char*> files[] = {{"::", "7::42::3.5::100\n8::42::1::200\n"},
                                                       {"\t", "7\t42\t3.5\t100\n8\t42\t1\t200\n"},
                                                       {",", "7,42,3.5,100\n8,42,1,200\n"}};
  for (const auto& [delimiter, text] : files) {
    Ratings ratings(text);
    EXPECT_EQ(ratings.description.delimiter, delimiter);
    EXPECT_FALSE(ratings.description.header);
    const Rows rows = ParseText(*ratings.Make(text).value(), text);
    ASSERT_TRUE(rows.bad.empty()) << rows.bad[0].what;
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows.labels[0], 3.5f);
    EXPECT_EQ(rows.labels[1], 1);
    ASSERT_EQ(rows.times.size(), 2u);
    EXPECT_EQ(rows.times[1], 200);
    ASSERT_EQ(rows.tokens.size(), 4u);
    EXPECT_EQ(Name(rows, 2), "8");
    EXPECT_EQ(Name(rows, 3), "42");
    for (std::uint32_t i = 0; i < 4; ++i) {
      EXPECT_EQ(rows.tokens[i].entry, i);
      EXPECT_EQ(rows.tokens[i].space, i % 2);
      EXPECT_EQ(rows.indices[i], 0u);
      EXPECT_EQ(rows.values[i], 1);
    }
    EXPECT_EQ(rows.offsets[2], 4u);
  }
}

TEST(Ratings, DescribesItsInput) {
  Described ratings{kRatings};
  ratings.options.joint_ids = true;
  ASSERT_TRUE(ratings.Describe("userId,movieId,rating,timestamp\n1,31,2.5,1260759144\n").ok());
  const Description& description = ratings.description;
  EXPECT_TRUE(description.header);
  EXPECT_EQ(description.delimiter, ",");
  EXPECT_EQ(description.dictionaries.size(), 2u);
  EXPECT_EQ(description.labels.kind, Labels::Kind::kReal);
  EXPECT_EQ(description.columns.size(), 4u);
  EXPECT_TRUE(description.joint_ids);
}

TEST(Ratings, KeepsNoTimesWhenTheFileHasNone) {
  Ratings ratings(kDat);
  const Rows rows = ParseText(*ratings.Make("1::2::3\n").value(), "1::2::3\n4::5::6\n");
  EXPECT_TRUE(rows.bad.empty());
  EXPECT_TRUE(rows.times.empty());
  EXPECT_EQ(rows.size(), 2u);
}

TEST(Ratings, TakesRowsWithoutARatingWhenNoneIsNeeded) {
  Ratings ratings(kDat);
  const Rows rows = ParseText(*ratings.Make("1::2\n", false).value(), "1::2\n1::3::4\n1::4::5::978300760\n");
  ASSERT_TRUE(rows.bad.empty()) << rows.bad[0].what;
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_TRUE(std::isnan(rows.labels[0]));
  EXPECT_EQ(rows.labels[1], 4);
  EXPECT_TRUE(rows.times.empty());
}

TEST(Ratings, TakesNamesThatAreNoNumbers) {
  Ratings ratings("ann lee::the third man::5\n");
  const Rows rows = ParseText(*ratings.Make("").value(), "ann lee::the third man::5\n");
  ASSERT_EQ(rows.tokens.size(), 2u);
  EXPECT_EQ(Name(rows, 0), "ann lee");
  EXPECT_EQ(Name(rows, 1), "the third man");
}

TEST(Ratings, TakesMixedLineEndsBlankLinesAndNoLastLineEnd) {
  Ratings ratings(kDat);
  const Rows rows = ParseText(*ratings.Make(kDat).value(), "1::2::3::4\r\n\n1::2::3::4\n \n1::2::3::4\r\n1::2::3::4");
  ASSERT_TRUE(rows.bad.empty()) << rows.bad[0].what;
  EXPECT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows.times[2], 4);
}

TEST(Ratings, SaysWhereAndWhatIsWrongWithARow) {
  Ratings ratings(kDat);
  const auto parser = ratings.Make(kDat).value();
  const std::string good = "1::2::3::4\n", long_number(400, '9');
  const Malformed table[] = {
      {"cut off", good + "1::2", 1, 5, "found 2 columns, expected 4 (user, item, rating, timestamp)", 1},
      {"one column", "hello\n", 0, 6, "found 1 column, expected 4"},
      {"no time where others have one", good + "1::2::3\n" + good, 1, 8, "found 3 columns, expected 4", 2},
      {"too many columns", "1::2::3::4::5::6\n", 0, 13, "found 6 columns, expected 4"},
      {"another delimiter", "1,2,3,4\n", 0, 8, "found 1 column"},
      {"no user", "::2::3::4\n", 0, 1, "expected the name of the user"},
      {"no item", "1::::3::4\n", 0, 4, "expected the name of the item"},
      {"rating is no number", "1::2::good::4\n", 0, 7, "found 'good', expected a rating"},
      {"no rating", "1::2::::4\n", 0, 7, "found '', expected a rating"},
      {"half a number", "1::2::3x::4\n", 0, 7, "found '3x', expected a rating"},
      {"huge rating", "1::2::1e39::4\n", 0, 7, "found '1e39', expected a rating"},
      {"overlong rating", "1::2::" + long_number + "::4\n", 0, 7, "expected a rating (a finite number)"},
      {"nan rating", "1::2::nan::4\n", 0, 7, "found 'nan'"},
      {"time is no number", "1::2::3::now\n", 0, 10, "found 'now', expected a timestamp"},
      {"negative time", "1::2::3::-4\n", 0, 10, "found '-4', expected a timestamp"},
      {"overlong time", "1::2::3::" + long_number + "\n", 0, 10, "expected a timestamp"},
      {"time beyond 63 bits", "1::2::3::9300000000000000000\n", 0, 10, "expected a timestamp"},
      {"NUL byte", good + std::string("1::\0::3::4\n", 11), 1, 4, "NUL byte", 1},
      {"binary garbage", "\x01\xff\x7f\x80\xfe", 0, 6, "found 1 column"},
  };
  for (const Malformed& malformed : table) ExpectBadRow(*parser, malformed);
}

TEST(Ratings, RefusesATimeWhereOtherRowsHaveNone) {
  Ratings ratings("1::2::3\n");
  ExpectBadRow(*ratings.Make("1::2::3\n").value(),
               {"time", "1::2::3\n1::2::3::4\n", 1, 10, "found 4 columns, expected 3", 1});
}

TEST(Ratings, SaysWhatIsWrongWithAHead) {
  for (const char* head : {"", "\n\n", "hello\n", "1::2\n", "a::b::c\n", "1\t2\n"}) {
    Described ratings{kRatings};
    const auto result = ratings.Describe(head, "u.data");
    ASSERT_FALSE(result.ok()) << head;
    EXPECT_EQ(result.error().code, Code::kBadInput);
    EXPECT_EQ(result.error().text.find("u.data:1:1: found "), 0u) << result.error().text;
  }
}

TEST(Ratings, TakesTheDelimiterAndHeaderItIsTold) {
  Described ratings{kRatings};
  ratings.options.delimiter = "tab";
  ratings.options.header = "yes";
  ASSERT_TRUE(ratings.Describe("who\twhat\tstars\n1::1\t2\t3\n").ok());
  EXPECT_EQ(ratings.description.delimiter, "\t");
  EXPECT_TRUE(ratings.description.header);
}

TEST(Ratings, SurvivesGarbage) {
  Ratings ratings(kDat);
  const auto parser = ratings.Make(kDat).value();
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    std::string text = Garbage(seed, seed * 7);
    for (std::size_t i = 0; i < text.size(); i += 2) text[i] = "1::2::3::4\n"[base::Hash64(i + seed) % 11];
    const Rows rows = ParseText(*parser, text);
    EXPECT_LE(rows.size() + rows.bad.size(), LinesIn(text));
    EXPECT_EQ(rows.tokens.size(), 2 * rows.size());
    EXPECT_EQ(rows.times.size(), rows.size());
  }
}

TEST(Ratings, IsToldFromTables) {
  for (const char* text : {kDat, "1::2::3.5\n", "196\t242\t3\t881250949\n186\t302\t3\t891717742\n", "1\t2\t5\r\n",
                           "userId,movieId,rating,timestamp\n1,31,2.5,1260759144\n", "user,item,rating\nann,x,3\n",
                           "User_ID\titem\tscore\n1\t2\t3.5\n"})
    EXPECT_TRUE(kRatings.looks_like(TestHead(text))) << text;
  for (const char* text :
       {"", "\n", "1,2,3,4\n", "1,2,3\n", "1\t2\t3\t4\t5\n", "1\t2\n", "1\t2\t3.5\n", "1\t2\t900\t4\n", "a\tb\t3\n",
        "1\t2\t3\n1\t2\n", "userId,movieId\n1,2\n", "user,age,income,city,label\n", "user,age,city\nann,3,rome\n",
        "std::string::x::y\n", "1 1:2 2:3\n"})
    EXPECT_FALSE(kRatings.looks_like(TestHead(text))) << text;
}

}  // namespace
}  // namespace freshet::data
