#include "data/formats/text.h"

#include <cmath>
#include <set>

#include "data/parse_testing.h"
#include "data/world_testing.h"

namespace freshet::data {

extern const Format kText;

namespace {

struct Text : Described {
  explicit Text(std::uint64_t steps, std::string_view head = "abcabc\nab") : Described{kText} {
    options.steps = steps;
    EXPECT_TRUE(Describe(head).ok());
  }
};

std::vector<float> DenseOf(const Rows& rows) { return {rows.dense.span().begin(), rows.dense.span().end()}; }
std::vector<float> LabelsOf(const Rows& rows) { return {rows.labels.span().begin(), rows.labels.span().end()}; }

TEST(Text, DescribesRowsOfStepsAndTheAlphabetInTheOrderOfBytes) {
  const Text text(4, std::string_view("b a\n\\\xff\0x", 8));
  EXPECT_TRUE(text.description.dense);
  EXPECT_FALSE(text.description.standardise);
  EXPECT_EQ(text.description.features, 4u);
  EXPECT_EQ(text.description.shape, (std::vector<std::uint64_t>{4}));
  EXPECT_EQ(text.description.labels.kind, Labels::Kind::kClasses);
  EXPECT_EQ(text.description.labels.names,
            (std::vector<std::string>{"\\x00", "\\n", " ", "\\\\", "a", "b", "x", "\\xff"}));
}

TEST(Text, EveryByteHasANameOfItsOwnThatCanBePrinted) {
  std::set<std::string> names;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string name = SymbolName(static_cast<unsigned char>(byte));
    for (const char c : name) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << byte;
    names.insert(name);
  }
  EXPECT_EQ(names.size(), 256u);
}

TEST(Text, ReadsSymbolsAsNumbersAndTheSymbolThatFollowsAsLabel) {
  Text text(2);  // \n a b c
  const auto parser = text.Make("abcabc").value();
  EXPECT_EQ(parser->cutting().kind, Cutting::Kind::kRecords);
  EXPECT_EQ(parser->cutting().record_bytes, 2u);
  EXPECT_EQ(parser->cutting().ahead_bytes, 1u);
  const Rows rows = ParseText(*parser, "abcabc\nb");
  EXPECT_TRUE(rows.bad.empty());
  EXPECT_EQ(DenseOf(rows), (std::vector<float>{1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(LabelsOf(rows), (std::vector<float>{3, 2, 0})) << "the last row has nothing after it";
}

TEST(Text, WithoutLabelsTheLastRowNeedsNoFollowerAndForeignSymbolsAreUnknown) {
  Text text(2);
  const Rows rows = ParseText(*text.Make("ab", false).value(), "ab?azzb");
  EXPECT_TRUE(rows.bad.empty());
  EXPECT_EQ(DenseOf(rows), (std::vector<float>{1, 2, 4, 1, 4, 4}));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_TRUE(std::isnan(rows.labels[0]));
  EXPECT_TRUE(std::isnan(rows.labels[1]));
  EXPECT_EQ(rows.labels[2], 2);
  EXPECT_TRUE(std::isnan(ParseText(*text.Make("ab", false).value(), "ab").labels[0]));
}

TEST(Text, SaysWhichSymbolIsNotOfTheAlphabet) {
  Text text(3);
  const auto parser = text.Make("abca").value();
  const char* const says = "symbol ? is not of the alphabet, expected one of \\n, a, b, c";
  ExpectBadRow(*parser, {"in a row", "abca?cabca", 1, 2, says, 2});
  ExpectBadRow(*parser, {"as a label", "abcabc?", 1, 4, says, 1});
  const Rows rows = ParseText(*parser, "ab?a", {.offset = 30});
  ASSERT_EQ(rows.bad.size(), 1u);
  EXPECT_TRUE(rows.bad[0].what.starts_with("byte 33: ")) << rows.bad[0].what;
}

TEST(Text, NeedsAWholeRow) {
  Text text(4);
  for (const bool labelled : {false, true}) {
    const auto short_of_one = text.Make(labelled ? "abca" : "abc", labelled);
    ASSERT_FALSE(short_of_one.ok());
    EXPECT_EQ(short_of_one.error().code, Code::kBadInput);
    EXPECT_EQ(short_of_one.error().text.find(labelled ? "input:1:1: found 4 symbols, expected at least 5"
                                                      : "input:1:1: found 3 symbols, expected at least 4"),
              0u)
        << short_of_one.error().text;
    EXPECT_TRUE(text.Make(labelled ? "abcab" : "abca", labelled).ok());
  }
}

TEST(Text, RefusesOtherLabelsThanItsSymbols) {
  for (const auto change : {+[](InputOptions& o) { o.positive = "a"; }, +[](InputOptions& o) { o.classes = {"a"}; },
                            +[](InputOptions& o) { o.task = Labels::Kind::kReal; },
                            +[](InputOptions& o) { o.task = Labels::Kind::kBinary; },
                            +[](InputOptions& o) { o.steps = 1; }, +[](InputOptions& o) { o.steps = 1 << 20; }}) {
    Described text{kText};
    change(text.options);
    const auto refused = text.Describe("abc");
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Code::kInvalid);
  }
}

TEST(Text, IsNeverGuessed) {
  for (const char* const bytes : {"to be or not to be", "", "a\nb\n"})
    EXPECT_FALSE(kText.looks_like(TestHead(bytes))) << bytes;
}

// However a file is cut into chunks and parts, every symbol that follows a row is its label, once.
TEST(Text, RowsDoNotDependOnChunksOrParts) {
  World world(2);
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "text");
    std::string letters;
    for (std::uint64_t n = 20 + random.Below(200); n > 0; --n) letters += static_cast<char>('a' + random.Below(26));
    InputOptions input;
    input.format = "text";
    input.steps = 2 + random.Below(9);
    ReaderOptions options = FilesAt({world.Write("letters", letters)});
    options.chunk_bytes = 1 + random.Below(60);
    const std::uint64_t parts = 1 + random.Below(4);
    std::vector<float> dense, labels;
    Description description;
    for (std::uint64_t part = 0; part < parts; ++part) {
      options.part = {part, parts};
      const auto reading = ReadRows(world, options, input);
      ASSERT_TRUE(reading.ok()) << reading.error().text;
      description = reading.value().description;
      dense.insert(dense.end(), reading.value().dense.begin(), reading.value().dense.end());
      labels.insert(labels.end(), reading.value().labels.begin(), reading.value().labels.end());
    }
    const auto& names = description.labels.names;
    ASSERT_EQ(labels.size(), (letters.size() - 1) / input.steps);
    ASSERT_EQ(dense.size(), labels.size() * input.steps);
    for (std::size_t i = 0; i < dense.size(); ++i)
      ASSERT_EQ(names[static_cast<std::size_t>(dense[i])], letters.substr(i, 1));
    for (std::size_t r = 0; r < labels.size(); ++r)
      ASSERT_EQ(names[static_cast<std::size_t>(labels[r])], letters.substr((r + 1) * input.steps, 1));
  }
}

TEST(Text, ReadsByTheAlphabetFoundAfterItWasOpened) {
  World world;
  const std::string first = world.Write("a.txt", "abababab"), second = world.Write("b.txt", "abc?abcd");
  InputOptions input;
  input.format = "text";
  input.steps = 3;
  Description description;
  const auto reader = Reader::Open(world.env(), FilesAt({first, second}), input, description);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(description.labels.names, (std::vector<std::string>{"a", "b"}));
  description.labels.names = ScanSymbols(world.posix, {world.Path("*.txt")}).value();
  description.labels.Index();
  EXPECT_EQ(description.labels.names, (std::vector<std::string>{"?", "a", "b", "c", "d"}));
  std::vector<float> labels;
  const auto read = DriveInOrder(world.env().executor, *reader.value(), [&](Rows& rows) -> Result<void> {
    labels.insert(labels.end(), rows.labels.span().begin(), rows.labels.span().end());
    return {};
  });
  ASSERT_TRUE(read.ok()) << read.error().text;
  EXPECT_EQ(labels, (std::vector<float>{2, 1, 0, 3}));
}

TEST(Text, SurvivesGarbage) {
  Text text(7, Garbage(1, 100));
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (const bool labelled : {false, true}) {
      const Rows rows = ParseText(*text.Make(Garbage(0, 20), labelled).value(), Garbage(seed, seed * 50));
      EXPECT_EQ(rows.dense.size(), rows.size() * 7);
      if (!labelled) {
        EXPECT_EQ(rows.size(), seed * 50 / 7);
      }
    }
}

}  // namespace
}  // namespace freshet::data
