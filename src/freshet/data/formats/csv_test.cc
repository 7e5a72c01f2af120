#include <cmath>

#include "base/option.h"
#include "data/formats/lines.h"
#include "data/parse_testing.h"
#include "data/world_testing.h"

namespace freshet::data {

extern const Format kCsv;

namespace {

using namespace std::string_literals;

template <class T>
std::vector<T> Copy(const Buffer<T>& buffer) {
  return {buffer.span().begin(), buffer.span().end()};
}

// A table that is described by its own text.
struct Csv : Described {
  explicit Csv(std::string text, InputOptions with = {}) : Described{kCsv}, text_(std::move(text)) {
    options = std::move(with);
    const auto result = Describe(text_);
    EXPECT_TRUE(result.ok()) << result.error().text;
  }
  // Its rows, without the header.
  Rows Read(bool labelled = true) {
    const std::size_t begin = description.header ? text_.find('\n') + 1 : 0;
    return ParseText(*Make(text_, labelled).value(), std::string_view(text_).substr(begin));
  }
  std::vector<Column::Kind> Kinds() const {
    std::vector<Column::Kind> kinds;
    for (const Column& column : description.columns) kinds.push_back(column.kind);
    return kinds;
  }
  std::vector<std::string> Names(const Rows& rows) const {
    std::vector<std::string> names;
    for (const Token& token : rows.tokens) {
      const std::string_view raw(rows.text.data() + token.begin, token.size);
      names.push_back(Str(token.space, "=", token.doubled_quotes ? Undoubled(raw) : std::string(raw)));
    }
    return names;
  }

 private:
  const std::string text_;
};

InputOptions With(std::string label) {
  InputOptions options;
  options.label = std::move(label);
  return options;
}

TEST(Csv, ReadsATableOfNumbersAsDenseRows) {
  Csv csv("a,b,label\n1,2.5,0\n-3e2, 4 ,1\n,NA,0\n");
  EXPECT_TRUE(csv.description.header);
  EXPECT_TRUE(csv.description.dense);
  EXPECT_EQ(csv.description.features, 2u);
  const Rows rows = csv.Read();
  ASSERT_TRUE(rows.bad.empty()) << rows.bad[0].what;
  EXPECT_EQ(Copy(rows.labels), (std::vector<float>{0, 1, 0}));
  EXPECT_EQ(rows.width, 2u);
  EXPECT_EQ(std::vector<float>(rows.dense.data(), rows.dense.data() + 4), (std::vector<float>{1, 2.5, -300, 4}));
  EXPECT_TRUE(std::isnan(rows.dense[4]) && std::isnan(rows.dense[5])) << "missing";
}

TEST(Csv, MakesMissingNumbersZeroWhenNobodyStandardises) {
  InputOptions options;
  options.standardise = false;
  Csv csv("a,b,label\n1,2,0\n,3,1\n", options);
  EXPECT_EQ(Copy(csv.Read().dense), (std::vector<float>{1, 2, 0, 3}));
}

TEST(Csv, ReadsCategoriesBehindNumbers) {
  Csv csv("city,size,kind,label\nrome,3,x,yes\n\"new, york\",4,\"say \"\"y\"\"\",no\n,5,x,yes\n");
  EXPECT_FALSE(csv.description.dense);
  EXPECT_EQ(csv.Kinds(), (std::vector{Column::Kind::kCategory, Column::Kind::kNumber, Column::Kind::kCategory,
                                      Column::Kind::kLabel}));
  const Rows rows = csv.Read();
  ASSERT_TRUE(rows.bad.empty()) << rows.bad[0].what;
  EXPECT_EQ(Copy(rows.labels), (std::vector<float>{1, 0, 1})) << "no, yes";
  EXPECT_EQ(Copy(rows.offsets), (std::vector<std::uint32_t>{0, 3, 6, 8}));
  EXPECT_EQ(rows.values[0], 3);
  EXPECT_EQ(rows.values[3], 4);
  EXPECT_EQ(csv.Names(rows), (std::vector<std::string>{"0=rome", "1=x", "0=new, york", "1=say \"y\"", "1=x"}));
}

TEST(Csv, LeavesTheTextAsItWas) {
  const std::string text = "\"a\"\"b\",1\n\"c\nd\",0\n\"e,1\nf\"\"g,0\n";
  Csv csv("x,1\ny,0\n");
  Rows rows = ChunkOf(text);
  csv.Make("").value()->Parse(rows);
  EXPECT_EQ(std::string(rows.text.data(), rows.text.size()), text);
}

TEST(Csv, HashesCategoriesByColumn) {
  InputOptions options;
  options.bits = 12;
  Csv csv("a,a,1\nb,\"b\",0\n\"x\"\"y\",z,1\n", options);
  const Rows rows = csv.Read();
  ASSERT_EQ(rows.indices.size(), 6u);
  EXPECT_TRUE(rows.tokens.empty());
  EXPECT_NE(rows.indices[0], rows.indices[1]) << "the same name in two columns is two features";
  EXPECT_EQ(rows.indices[0], base::Hash64("a", 1) & 4095);
  EXPECT_EQ(rows.indices[4], base::Hash64("x\"y", 1) & 4095);
}

TEST(Csv, InfersDelimiterAndHeader) {
  const struct {
    const char* text;
    const char* delimiter;
    bool header;
  } table[] = {
      {"1,2,3\n4,5,6\n", ",", false},           {"1;2;3\n4;5;6\n", ";", false}, {"1\t2\t3\n4\t5\t6\n", "\t", false},
      {"1|2|3\n4|5|6\n", "|", false},           {"1 2 3\n4 5 6\n", " ", false}, {"a,b,y\n1,2,3\n", ",", true},
      {"a;b,c;y\n1;2,5;3\n", ";", true},        {"a,b,y\nx,y,1\n", ",", true},  {"a,b,c\nd,e,f\n", ",", true},
      {"\n\na,b,y\n1,2,3\n4,5,6\n", ",", true},
  };
  for (const auto& [text, delimiter, header] : table) {
    SCOPED_TRACE(text);
    InputOptions options;
    options.task = Labels::Kind::kReal;
    Csv csv(text, options);
    EXPECT_EQ(csv.description.delimiter, delimiter);
    EXPECT_EQ(csv.description.header, header);
  }
}

TEST(Csv, FindsTheLabelByNameByNumberOrByCustom) {
  const std::string text = "target,b,c\n1,2,0\n0,3,1\n";
  const auto label_of = [&](const std::string& said) {
    Csv csv(text, With(said));
    const auto kinds = csv.Kinds();
    return std::find(kinds.begin(), kinds.end(), Column::Kind::kLabel) - kinds.begin();
  };
  EXPECT_EQ(label_of(""), 0) << "called target";
  EXPECT_EQ(label_of("c"), 2);
  EXPECT_EQ(label_of("2"), 1);
  EXPECT_EQ(label_of("-1"), 2);
  Csv unnamed("5,6,1\n7,8,0\n");
  EXPECT_EQ(unnamed.Kinds().back(), Column::Kind::kLabel) << "the last one";
  Described csv{kCsv};
  csv.options.label = "bb";
  const auto result = csv.Describe(text);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Code::kInvalid);
  EXPECT_EQ(result.error().text, Str(Option("label"), " 'bb': no such column; did you mean 'b'?"));
}

TEST(Csv, GoesWithoutALabelColumnWhenToldThereIsNone) {
  Csv csv("a,b\n1,2\n3,4\n", With("none"));
  EXPECT_EQ(csv.description.features, 2u);
  EXPECT_EQ(csv.description.labels.kind, Labels::Kind::kReal);
  const Rows rows = csv.Read(false);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_TRUE(std::isnan(rows.labels[0]) && std::isnan(rows.labels[1]));
  EXPECT_EQ(Copy(rows.dense), (std::vector<float>{1, 2, 3, 4}));
  const auto labelled = csv.Make("a,b\n1,2\n", true);
  ASSERT_FALSE(labelled.ok());
  EXPECT_EQ(labelled.error().code, Code::kInvalid);
}

TEST(Csv, ReadsColumnsByNameThoughTheirOrderDiffers) {
  Csv csv("a,b,label\n1,2,0\n3,4,1\n");
  const std::string other = "label,extra,b,a\n";
  const Rows rows = ParseText(*csv.Make(other).value(), "1,word,20,10\n");
  ASSERT_TRUE(rows.bad.empty()) << rows.bad[0].what;
  EXPECT_EQ(Copy(rows.dense), (std::vector<float>{10, 20}));
  const Rows unlabelled = ParseText(*csv.Make("b,a\n", false).value(), "20,10\n");
  EXPECT_EQ(Copy(unlabelled.dense), (std::vector<float>{10, 20}));
  const auto missing = csv.Make("label,b\n", true, "test.csv");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().text,
            "test.csv:1:1: found no column 'a' in the header, expected one, since the model was trained with it");
}

TEST(Csv, KeepsColumnsOfOneNameApart) {
  Csv csv("x,x,label\n1,2,0\n3,4,1\n");
  EXPECT_EQ(Copy(csv.Read().dense), (std::vector<float>{1, 2, 3, 4}));
}

TEST(Csv, TakesWeightsAndTimes) {
  InputOptions options;
  options.weight_column = "w";
  options.time_column = "t";
  options.ignore = {"i"};
  Csv csv("a,w,t,i,label\n1,0.5,1700000000,x,0\n2,2,-5,\"y\n\",1\n", options);
  EXPECT_EQ(csv.description.features, 1u);
  const Rows rows = csv.Read();
  ASSERT_TRUE(rows.bad.empty()) << rows.bad[0].what;
  EXPECT_EQ(Copy(rows.weights), (std::vector<float>{0.5, 2}));
  EXPECT_EQ(Copy(rows.times), (std::vector<std::int64_t>{1'700'000'000, -5}));
}

TEST(Csv, ReadsManyZerosAndOnesAsItReadsAnything) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "one-hot");
    const std::size_t columns = 1 + random.Below(20);
    std::string text;
    std::vector<float> expected;
    for (int r = 0; r < 20; ++r) {
      for (std::size_t c = 0; c < columns; ++c) {
        const std::uint64_t number = random.Below(random.Below(5) == 0 ? 3000 : 2);
        expected.push_back(static_cast<float>(number));
        text += Str(random.Below(30) == 0 ? " " : "", number, ",");
      }
      text += Str(r % 2, random.Below(2) ? "\n" : "\r\n");
    }
    Csv csv(text);
    const Rows rows = csv.Read();
    ASSERT_TRUE(rows.bad.empty()) << rows.bad[0].what;
    ASSERT_EQ(Copy(rows.dense), expected);
  }
}

TEST(Csv, RoundTripsQuotedTextOfAnyKind) {
  Csv csv("x,1\ny,0\n");
  const auto parser = csv.Make("").value();
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "quotes");
    std::string text;
    std::vector<std::string> expected;
    for (int r = 0; r < 8; ++r) {
      std::string name = "q", quoted;
      for (std::uint64_t n = random.Below(6); n > 0; --n) name += "ab \",\n\r\t'"[random.Below(9)];
      name += "q";  // blanks around a field are trimmed
      for (const char c : name) quoted += c == '"' ? "\"\"" : std::string(1, c);
      text += Str("\"", quoted, "\",", random.Below(2), "\n");
      expected.push_back("0=" + name);
    }
    const Rows rows = ParseText(*parser, text);
    ASSERT_TRUE(rows.bad.empty()) << rows.bad[0].what;
    ASSERT_EQ(csv.Names(rows), expected);
  }
}

TEST(Csv, SkipsAByteOrderMarkAndBlankLinesBeforeTheHeader) {
  World world;
  for (const std::string before : {"", "\xef\xbb\xbf", "\n", "\r\n \n", "\xef\xbb\xbf\n\n"}) {
    SCOPED_TRACE(Quoted(before));
    const std::string path = world.Write("t.csv", before + "a,b,label\n1,2,0\n3,4,1\n");
    const auto reading = ReadRows(world, FilesAt({path}));
    ASSERT_TRUE(reading.ok()) << reading.error().text;
    EXPECT_EQ(reading.value().description.columns[0].name, "a");
    EXPECT_EQ(reading.value().dense, (std::vector<float>{1, 2, 3, 4}));
  }
}

TEST(Csv, SaysWhereAndWhatIsWrongWithAFile) {
  World world;
  const std::string good = "n,c,w,t,label\n1,x,1,5,0\n2.5,\"y,z\",0.5,6,1\n", longest(400, '9');
  const std::string hint =
      Str(", expected a number, as in the first rows; list the column under ", Option("categorical"), " if it is one");
  const std::string date = ", or a date such as 2021-03-04T12:34:56Z";
  const MalformedFile table[] = {
      {"empty", "", "1:1", "found an empty file, expected rows of data", MalformedFile::kNone},
      {"only blank lines", "\n  \n\r\n", "1:1", "found only blank lines, expected a table", MalformedFile::kNone},
      {"only a header", "n,c,w,t,label\n", "2:1",
       Str("found no rows below the names of the columns, expected some; use ", Option("header"),
           " no if the first line is a row"),
       MalformedFile::kNone},
      {"cut off", good + "3,x", "4:4", "found 2 columns, expected 5", 2},
      {"cut off inside quotes", good + "3,\"x", "4:3",
       "found a quote that is never closed, expected another before the end of the line", 2},
      {"too few columns", good + "3,x,1,5\n4,y,1,5,1\n", "4:8", "found 4 columns, expected 5", 3},
      {"too many columns", good + "3,x,1,5,1,7,8\n", "4:10", "found 7 columns, expected 5", 2},
      {"one column", good + "word\n", "4:1", "found 'word'" + hint, 2},
      {"another delimiter", good + "3;x;1;5;1\n", "4:1", "found '3;x;1;5;1'" + hint, 2},
      {"number is none", good + "abc,x,1,5,1\n", "4:1", "found 'abc'" + hint, 2},
      {"quoted number is none", good + "\"a\"\"b\",x,1,5,1\n4,y,1,5,1\n", "4:1", "found 'a\"\"b'" + hint, 3},
      {"overlong number", good + longest + ",x,1,5,1\n", "4:1",
       "found " + Quoted(longest) + ", expected a finite number", 2},
      {"number beyond float", good + "1e39,x,1,5,1\n", "4:1", "found '1e39', expected a finite number", 2},
      {"number is not finite", good + "inf,x,1,5,1\n", "4:1", "found 'inf', expected a finite number", 2},
      {"text after a closing quote", good + "3,\"x\"y,1,5,1\n", "4:6", "found 'y' after a closing quote, expected ','",
       2},
      {"NUL byte in a category", good + "3,a\0b,1,5,1\n"s, "4:4", "found a NUL byte, expected text", 2},
      {"NUL byte between quotes", good + "3,\"a\n\0b\",1,5,1\n4,y,1,5,1\n"s, "4:6", "found a NUL byte, expected text",
       3},
      {"NUL byte in a number", good + "\0,a,1,5,1\n"s, "4:1", "found a NUL byte, expected text", 2},
      {"no label", good + "3,x,1,5,\n", "4:1", "found no label in this row, expected one of 0, 1", 2},
      {"label is not known", good + "3,x,1,5,7\n", "4:9", "label '7', expected one of 0, 1", 2},
      {"label is text", good + "3,x,1,5,\"yes\"\n", "4:9", "label '\"yes\"', expected one of 0, 1", 2},
      {"label is not finite", good + "3,x,1,5,inf\n", "4:9", "label 'inf', expected one of 0, 1", 2},
      {"negative weight", good + "3,x,-1,5,1\n", "4:5", "found weight '-1', expected 0 or more", 2},
      {"no weight", good + "3,x,,5,1\n", "4:5", "found weight '', expected 0 or more", 2},
      {"no time", good + "3,x,1,,1\n", "4:7", "found time '', expected seconds since 1970" + date, 2},
      {"time beyond 63 bits", good + "3,x,1,1e19,1\n", "4:7", "found time '1e19', expected seconds since 1970" + date,
       2},
      {"time is a word", good + "3,x,1,now,1\n", "4:7", "found time 'now', expected seconds since 1970" + date, 2},
      {"line ends of three kinds", good + "3,x,1,5,1\r\n4,x,1,5,1\r5,x,1,5,1\n", "5:9",
       "label '1\\x0d5', expected one of 0, 1", 3},
      {"binary garbage", good + "\x01\xff\x7f\x80\xfe", "4:1", "found '\\x01\xff\\x7f\x80\xfe'" + hint, 2},
      {"a mistake before a line end between quotes", good + "x,\"a\nb\",1,5,1\n4,y,1,5,1\n", "4:1", "found 'x'" + hint,
       3},
      {"the row behind a line end between quotes", good + "3,\"a\nb\n\",1,5,1\nx,y,1,5,1\n", "7:1", "found 'x'" + hint,
       3},
      {"a quote that never closes costs one row", good + "3,\"a \"\"b,1,5,1\n4,y,1,5,1\n5,z,1,5,1\n", "4:3",
       "found a quote that is never closed, expected another before the end of the line", 4},
  };
  InputOptions input;
  input.format = "csv";
  input.header = "yes";
  input.delimiter = ",";
  input.classes = {"0", "1"};
  input.weight_column = "w";
  input.time_column = "t";
  for (MalformedFile malformed : table) {
    // Whether a column holds numbers is told by the first rows: enough good ones, so that the bad one is not among
    // them.
    if (malformed.good != MalformedFile::kNone) {
      std::string many = good;
      for (int i = 0; i < 10'000; ++i) many += "1,x,1,5,0\n";
      malformed.text = many + malformed.text.substr(good.size());
      malformed.place = Str(std::stoi(malformed.place) + 10'000, malformed.place.substr(malformed.place.find(':')));
      malformed.good += 10'000;
    }
    ExpectMalformed(world, malformed, input);
  }
}

TEST(Csv, RefusesADelimiterThatNumbersHave) {
  for (const char* delimiter : {"1", ".", "-", "\"", "e", "ab", "\n"}) {
    Described csv{kCsv};
    csv.options.delimiter = delimiter;
    const auto result = csv.Describe("1,2\n3,4\n");
    ASSERT_FALSE(result.ok()) << delimiter;
    EXPECT_EQ(result.error().code, Code::kInvalid);
  }
}

TEST(Csv, RefusesADescriptionThatDoesNotHoldTogether) {
  Csv good("a,b,1\nc,d,0\n");
  const auto refused = [&](auto damage) {
    Description description = good.description;
    damage(description);
    const auto parser = kCsv.make(TestHead("a,b,1\n"), description, {}, good.files, true);
    return !parser.ok() && parser.error().code == Code::kCorrupt;
  };
  EXPECT_TRUE(refused([](Description& d) { d.columns.clear(); }));
  EXPECT_TRUE(refused([](Description& d) { d.delimiter = ""; }));
  EXPECT_TRUE(refused([](Description& d) { d.features = 3; }));
  EXPECT_TRUE(refused([](Description& d) { d.dense = true; }));
  EXPECT_TRUE(refused([](Description& d) { d.dictionaries.clear(); }));
  EXPECT_TRUE(refused([](Description& d) { d.columns[0].kind = Column::Kind::kLabel; }));
  EXPECT_FALSE(refused([](Description&) {}));
}

TEST(Csv, SurvivesGarbage) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    std::string text = Garbage(seed, seed * 3);
    for (std::size_t i = 0; i < text.size(); ++i)
      if (base::Hash64(seed + i) % 8 != 0) text[i] = "1,2,\"a\n0.5,\r\n \""[base::Hash64(i ^ seed << 20) % 15];
    Csv csv(seed % 2 ? "1,a,2,0\n2,b,3,1\n" : "1,2,3,4,5,0\n1,2,3,4,5,1\n");
    const Rows rows = ParseText(*csv.Make("").value(), text);
    ASSERT_LE(rows.size() + rows.bad.size(), LinesIn(text));
    if (rows.width > 0) {
      ASSERT_EQ(rows.dense.size(), rows.size() * rows.width);
    } else {
      ASSERT_EQ(rows.offsets.back(), rows.indices.size());
      ASSERT_EQ(rows.indices.size(), rows.values.size());
    }
  }
}

TEST(Csv, IsToldByItsColumns) {
  for (const char* text : {"a,b\n", "1;2\n", "1\t2\t3\n", "\n\n1,2\n"})
    EXPECT_TRUE(kCsv.looks_like(TestHead(text))) << text;
  for (const char* text : {"", "\n", "word\n", "\"a,b\"\n"}) EXPECT_FALSE(kCsv.looks_like(TestHead(text))) << text;
  EXPECT_FALSE(kCsv.looks_like(TestHead(std::string_view("a,\0b\n", 5))));
}

}  // namespace
}  // namespace freshet::data
