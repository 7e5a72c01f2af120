#include "data/parse_testing.h"

#include "base/option.h"

namespace freshet::data {

extern const Format kCifar10;

namespace {

constexpr std::size_t kRecordBytes = 3073;

std::string Record(int label, int pixel) {
  return static_cast<char>(label) + std::string(kRecordBytes - 1, static_cast<char>(pixel));
}

struct Cifar10 : Described {
  Cifar10() : Described{kCifar10} { EXPECT_TRUE(Describe(Record(3, 0)).ok()); }
};

TEST(Cifar10, DescribesAllTenClassesWhateverTheHeadHas) {
  Cifar10 cifar;
  EXPECT_TRUE(cifar.description.dense);
  EXPECT_EQ(cifar.description.features, 3072u);
  EXPECT_EQ(cifar.description.shape, (std::vector<std::uint64_t>{3, 32, 32}));
  EXPECT_EQ(cifar.description.labels.kind, Labels::Kind::kClasses);
  EXPECT_EQ(cifar.description.labels.classes(), 10u);
}

TEST(Cifar10, ReadsLabelsAndPixelsFromZeroToOne) {
  Cifar10 cifar;
  const auto parser = cifar.Make("").value();
  EXPECT_EQ(parser->cutting().kind, Cutting::Kind::kRecords);
  EXPECT_EQ(parser->cutting().record_bytes, kRecordBytes);
  EXPECT_EQ(parser->cutting().header_bytes, 0u);
  const Rows rows = ParseText(*parser, Record(3, 255) + Record(9, 51) + Record(0, '\n'));
  ASSERT_TRUE(rows.bad.empty()) << rows.bad[0].what;
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows.width, 3072u);
  EXPECT_EQ(rows.labels[0], 3);
  EXPECT_EQ(rows.labels[1], 9);
  EXPECT_EQ(rows.dense[0], 1);
  EXPECT_EQ(rows.dense[3071], 1);
  EXPECT_FLOAT_EQ(rows.dense[3072], 0.2f);
  EXPECT_EQ(rows.dense.size(), 3 * 3072u);
}

TEST(Cifar10, TakesOneClassAgainstTheRest) {
  Described cifar{kCifar10};
  cifar.options.positive = "3";
  ASSERT_TRUE(cifar.Describe(Record(3, 0)).ok());
  const Rows rows = ParseText(*cifar.Make("").value(), Record(3, 0) + Record(4, 0));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows.labels[0], 1);
  EXPECT_EQ(rows.labels[1], 0);
}

TEST(Cifar10, SaysWhichRecordIsWrong) {
  Cifar10 cifar;
  const auto parser = cifar.Make("").value();
  const std::string good = Record(1, 7);
  const Malformed table[] = {
      {"label too large", good + Record(10, 7) + good, 1, 1, "record 2: label byte 10, expected 0 to 9", 2},
      {"label is 255", Record(255, 7), 0, 1, "record 1: label byte 255"},
      {"cut off", good + good.substr(0, 100), 1, 101, "record 2: found 100 bytes, expected 3073", 1},
      {"one byte too many", good + "x", 1, 2, "record 2: found 1 bytes, expected 3073", 1},
      {"one byte missing", good.substr(1), 0, 3073, "record 1: found 3072 bytes, expected 3073"},
      {"text", "1 1:2 2:3\r\n1 1:2\n", 0, 18, "record 1: found 17 bytes, expected 3073"},
  };
  for (const Malformed& malformed : table) ExpectBadRow(*parser, malformed);
}

TEST(Cifar10, CountsRecordsFromTheBeginningOfTheFile) {
  Cifar10 cifar;
  const Rows rows = ParseText(*cifar.Make("").value(), Record(77, 0), {.offset = 5 * kRecordBytes});
  ASSERT_EQ(rows.bad.size(), 1u);
  EXPECT_EQ(rows.bad[0].line, 0u);
  EXPECT_EQ(rows.bad[0].what.find("record 6: "), 0u) << rows.bad[0].what;
}

TEST(Cifar10, ReadsNothingFromNothing) {
  Cifar10 cifar;
  const Rows rows = ParseText(*cifar.Make("").value(), "");
  EXPECT_EQ(rows.size() + rows.bad.size(), 0u);
}

TEST(Cifar10, SurvivesGarbage) {
  Cifar10 cifar;
  const auto parser = cifar.Make("").value();
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    const Rows rows = ParseText(*parser, Garbage(seed, seed * 1000));
    EXPECT_EQ(rows.size() + rows.bad.size(), (seed * 1000 + kRecordBytes - 1) / kRecordBytes);
    EXPECT_EQ(rows.dense.size(), rows.size() * rows.width);
  }
}

// A record whose pixels differ.
std::string Picture(int label) {
  std::string record = Record(label, 0);
  for (std::size_t i = 1; i < record.size(); ++i) record[i] = static_cast<char>(i % 251);
  return record;
}

TEST(Cifar10, IsToldByLabelsWhereRecordsBegin) {
  EXPECT_TRUE(kCifar10.looks_like(TestHead(Picture(3))));
  EXPECT_TRUE(kCifar10.looks_like(TestHead(Picture(3) + Picture(0) + Picture(9).substr(0, 5))));
  EXPECT_FALSE(kCifar10.looks_like(TestHead("")));
  EXPECT_FALSE(kCifar10.looks_like(TestHead(Record(3, 0).substr(0, 3000)))) << "less than a record";
  EXPECT_FALSE(kCifar10.looks_like(TestHead(Picture(3) + Picture(10)))) << "no label at the second record";
  EXPECT_FALSE(kCifar10.looks_like(TestHead(Picture('1')))) << "no label at the first";
  EXPECT_FALSE(kCifar10.looks_like(TestHead(Record('\t', 'a')))) << "text that begins with a tab";
}

TEST(Cifar10, IsNotWhateverHasItsLength) {
  EXPECT_FALSE(kCifar10.looks_like(TestHead(std::string(20 * kRecordBytes, '\0')))) << "zeros";
  EXPECT_FALSE(kCifar10.looks_like(TestHead(Record(3, 0) + Record(4, 1)))) << "pixels that hardly differ";
  std::string same;
  for (int i = 0; i < 20; ++i) same += Picture(3);
  EXPECT_FALSE(kCifar10.looks_like(TestHead(same))) << "one label only";
  EXPECT_TRUE(kCifar10.looks_like(TestHead(same + Picture(4))));
  const auto sniffed = SniffFormat(TestHead(std::string(20 * kRecordBytes, '\0'), "zeros.bin"));
  ASSERT_FALSE(sniffed.ok());
  EXPECT_TRUE(
      sniffed.error().text.starts_with(Str("zeros.bin:1:1: found bytes that are no text, expected a format that can be "
                                           "told by its looks; say which it is with ",
                                           Option("format"))))
      << sniffed.error().text;
}

}  // namespace
}  // namespace freshet::data
