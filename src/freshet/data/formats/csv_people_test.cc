// Tables as people and their programs write them: what is told of them by looking, and what is said about it.

#include <cmath>

#include "base/option.h"
#include "data/parse_testing.h"
#include "data/row_builder.h"
#include "data/world_testing.h"

namespace freshet::data {

extern const Format kCsv;

namespace {

using Kind = Column::Kind;

Description Looked(std::string_view text, InputOptions options = {}) {
  Described csv{kCsv};
  csv.options = std::move(options);
  const auto result = csv.Describe(text);
  EXPECT_TRUE(result.ok()) << result.error().text;
  return csv.description;
}

InputOptions AnyLabel() {
  InputOptions options;
  options.task = Labels::Kind::kReal;
  return options;
}

std::vector<Kind> Kinds(const Description& description) {
  std::vector<Kind> kinds;
  for (const Column& column : description.columns) kinds.push_back(column.kind);
  return kinds;
}

bool Notes(const Description& description, std::string_view piece) {
  return std::any_of(description.notes.begin(), description.notes.end(),
                     [&](const std::string& note) { return note.find(piece) != std::string::npos; });
}

Reading ReadText(World& world, std::string_view text, const InputOptions& input = {}, bool labelled = true) {
  ReaderOptions options = FilesAt({world.Write("table.csv", text)});
  options.labelled = labelled;
  auto reading = ReadRows(world, options, input);
  EXPECT_TRUE(reading.ok()) << reading.error().text;
  return std::move(reading).value();
}

std::string Repeated(std::string_view lines, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += lines;
  return out;
}

TEST(CsvHeader, IsToldByMoreThanNumbers) {
  const struct {
    const char* what;
    std::string text;
    bool header;
  } table[] = {
      {"all text", "colour,size,kind\n" + Repeated("red,big,a\nblue,small,b\n", 10), true},
      {"all text without names", Repeated("red,big,a\nblue,small,b\n", 10), false},
      {"mushrooms", Repeated("p,x,s\ne,b,y\np,b,s\ne,x,y\n", 5), false},
      {"two lines of text", "city,land\nrome,italy\n", true},
      {"names that come again in another column only", "a,b\n" + Repeated("b,x\nc,y\n", 8), true},
      {"a name that comes again", "a,b\n" + Repeated("a,x\nc,y\n", 8), false},
      {"a name twice", "x,x\n" + Repeated("a,b\nc,d\n", 8), false},
      {"numbers below one name", "name,age\nann,\nbob,41\n", true},
      {"missing numbers", "name,age\nann,NA\nbob,\ncy,7\n", true},
      {"dates below a name", "day,kind\n2021-03-04,a\n2021-03-05,b\n", true},
      {"dates in the first line", "2021-03-04,a\n2021-03-05,b\n2021-03-06,c\n", false},
      {"decimal commas below", "a;b\n1,5;x\n2,5;y\n", true},
      {"names in quotes", "\"first\",\"second\"\nann,bob\ncy,dora\n", true},
      {"values in quotes", "first,second\n\"ann\",\"bob\"\n\"cy\",\"dora\"\n", true},
      {"a quoted row", "\"Rome, Italy\",a\nParis,b\nOslo,a\n", false},
      {"pandas' index", ",x,kind\n0,a,b\n1,c,d\n2,e,f\n", true},
      {"pandas' index and numbered columns", ",0,1,2\n0,5.5,6,7\n1,8,9,4\n", true},
      {"numbered columns", "label,0,1,2\n5,0,0,7\n3,9,9,4\n", true},
      {"years", "country,2019,2020\n" + Repeated("fr,5,6\nit,7,8\n", 5), false},
      {"a word in a column of numbers", "unknown,5,6\n3,4,5\n6,7,8\n", false},
      {"a row that counts", "1,2,yes\n3,4,no\n5,6,yes\n", false},
      {"numbers", "5,6,7\n8,9,1\n", false},
      {"mail addresses", "ann@x.org,paris\nbob@y.org,oslo\n", false},
      {"text with names of other alphabets", "größe,städte\n" + Repeated("a,b\nc,d\n", 8), true},
      {"a long text", std::string(80, 'x') + ",a\nyy,b\nzz,c\n", false},
  };
  for (const auto& [what, text, header] : table) {
    SCOPED_TRACE(what);
    EXPECT_EQ(Looked(text, AnyLabel()).header, header);
  }
}

TEST(CsvHeader, SaysWhenNothingButTheFormSpokeForIt) {
  EXPECT_TRUE(Notes(Looked("city,land\nrome,italy\noslo,norway\n"), Str(Option("header"), " no")));
  EXPECT_FALSE(Notes(Looked("colour,size\n" + Repeated("red,big\nblue,small\n", 20)), Str(Option("header"), " no")));
  EXPECT_FALSE(Notes(Looked("a,b\n1,2\n", AnyLabel()), Str(Option("header"), " no")));
}

TEST(CsvHeader, LosesNoRowOfRandomTablesWithoutOne) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "headers");
    const std::size_t columns = 2 + random.Below(5), values = 2 + random.Below(4);
    std::string rows;
    for (int r = 0; r < 60; ++r)
      for (std::size_t c = 0; c < columns; ++c) rows += Str("v", random.Below(values), c + 1 < columns ? "," : "\n");
    EXPECT_FALSE(Looked(rows).header);
    std::string names;
    for (std::size_t c = 0; c < columns; ++c) names += Str("name", c, c + 1 < columns ? "," : "\n");
    EXPECT_TRUE(Looked(names + rows).header);
  }
}

TEST(CsvDecimal, IsACommaWhereNumbersHaveOne) {
  const struct {
    const char* text;
    char decimal;
    std::vector<Kind> kinds;
  } table[] = {
      {"a;b;y\n1,5;2;0\n2,25;3;1\n", ',', {Kind::kNumber, Kind::kNumber, Kind::kLabel}},
      {"a;b;y\n1.234,56;2;0\n999,5;3;1\n", ',', {Kind::kNumber, Kind::kNumber, Kind::kLabel}},
      {"a\tb\ty\n1,5\tx\t0\n2,25\tz\t1\n", ',', {Kind::kNumber, Kind::kCategory, Kind::kLabel}},
      {"a,b,y\n\"1,5\",2,0\n\"2,25\",3,1\n", ',', {Kind::kNumber, Kind::kNumber, Kind::kLabel}},
      {"a;b;y\n1.5;2;0\n2.25;3;1\n", '.', {Kind::kNumber, Kind::kNumber, Kind::kLabel}},
      {"a,b,y\n\"1,234\",2,0\n\"12,345,678\",3,1\n", '.', {Kind::kNumber, Kind::kNumber, Kind::kLabel}},
      {"a,b,y\n\"1,234.5\",2,0\n7,3,1\n", '.', {Kind::kNumber, Kind::kNumber, Kind::kLabel}},
      {"a;b;y\n1,234;2;0\n2,500;3;1\n", ',', {Kind::kNumber, Kind::kNumber, Kind::kLabel}},
      {"a;b;y\n1;2;0,5\n2;3;1,5\n3;1;2,5\n", ',', {Kind::kNumber, Kind::kNumber, Kind::kLabel}},
  };
  for (const auto& [text, decimal, kinds] : table) {
    SCOPED_TRACE(text);
    const Description description = Looked(text);
    EXPECT_EQ(description.decimal, decimal);
    EXPECT_EQ(Kinds(description), kinds);
  }
  EXPECT_TRUE(Notes(Looked(table[0].text),
                    Str("numbers are read with a decimal comma ('1,5'); ", Option("decimal"), " point")));
  EXPECT_TRUE(Notes(Looked(table[5].text), Str("'1,234' is read as 1234; ", Option("decimal"), " comma")));
  EXPECT_TRUE(Notes(Looked(table[7].text), Str("'1,234' is read as 1.234; ", Option("decimal"), " point")));
  EXPECT_TRUE(Looked(table[4].text).notes.empty());
  InputOptions point;
  point.decimal = "point";
  EXPECT_EQ(Looked(table[0].text, point).columns[0].kind, Kind::kCategory);
}

TEST(CsvDecimal, ReadsTheSameNumbersAsAPoint) {
  World world;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "decimals");
    std::string points = "a;b;y\n", commas = points;
    for (int r = 0; r < 50; ++r)
      for (int c = 0; c < 3; ++c) {
        std::string number = Fixed(random.Normal() * 100, static_cast<int>(1 + random.Below(12)));
        if (random.Below(9) == 0 && c < 2) number = "";
        const char end = c < 2 ? ';' : '\n';
        points += Str(number, end);
        std::replace(number.begin(), number.end(), '.', ',');
        commas += Str(number, end);
      }
    const Reading point = ReadText(world, points), comma = ReadText(world, commas);
    EXPECT_EQ(comma.description.decimal, ',');
    EXPECT_EQ(comma.labels, point.labels);
    ASSERT_EQ(comma.dense.size(), point.dense.size());
    for (std::size_t i = 0; i < point.dense.size(); ++i)
      EXPECT_TRUE(comma.dense[i] == point.dense[i] || (std::isnan(comma.dense[i]) && std::isnan(point.dense[i])));
  }
}

TEST(CsvDates, BecomeYearMonthWeekdayAndHour) {
  World world;
  const Reading days = ReadText(world, "day,x,y\n2021-03-04,1,0\n,2,1\n2020-02-29,3,0\n");
  EXPECT_EQ(Kinds(days.description), (std::vector{Kind::kDate, Kind::kNumber, Kind::kLabel}));
  EXPECT_EQ(days.description.features, 4u);
  EXPECT_EQ(days.description.NumberNames(), (std::vector<std::string>{"day.year", "day.month", "day.weekday", "x"}));
  EXPECT_EQ(std::vector<float>(days.dense.begin(), days.dense.begin() + 4), (std::vector<float>{2021, 3, 4, 1}));
  EXPECT_TRUE(std::isnan(days.dense[4]) && std::isnan(days.dense[6]) && days.dense[7] == 2);
  EXPECT_EQ(std::vector<float>(days.dense.begin() + 8, days.dense.end()), (std::vector<float>{2020, 2, 6, 3}));
  EXPECT_TRUE(Notes(days.description, "column 'day' holds dates: they are read as year, month and weekday"));

  const Reading times = ReadText(world, "c,at,y\na,2021-03-04T12:34:56Z,0\nb,\"2021-03-05 23:00:00+02:00\",1\n");
  EXPECT_EQ(Kinds(times.description), (std::vector{Kind::kCategory, Kind::kDateTime, Kind::kLabel}));
  EXPECT_EQ(times.values, (std::vector<float>{2021, 3, 4, 12, 1, 2021, 3, 5, 23, 1}));
  EXPECT_EQ(times.indices, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 0, 1, 2, 3, 5}));
  InputOptions options;
  options.categorical = {"day"};
  EXPECT_EQ(Kinds(Looked("day,x,y\n2021-03-04,1,0\n2021-03-05,2,1\n", options))[0], Kind::kCategory);
  options.categorical.clear();
  options.time_column = "day";
  EXPECT_EQ(ReadText(world, "day,x,y\n2021-03-04,1,0\n2021-03-05T01:00:00Z,2,1\n", options).times,
            (std::vector<std::int64_t>{1'614'816'000, 1'614'906'000}));
}

TEST(CsvDates, ThatAreNoneAreRefusedInTheirRow) {
  World world;
  std::string text = "day,x,y\n";
  for (int i = 0; i < 10'000; ++i) text += "2021-03-04,1,0\n2021-03-05,2,1\n";
  const auto reading = ReadRows(world, FilesAt({world.Write("t.csv", text + "yesterday,1,0\n")}));
  ASSERT_FALSE(reading.ok());
  EXPECT_NE(reading.error().text.find(":20002:1: found 'yesterday', expected a date such as 2021-03-04"),
            std::string::npos)
      << reading.error().text;
}

TEST(CsvRows, PostedAsColumnsAreWhatTheTextIs) {
  World world;
  const std::string text =
      "day;price;city;y\n2021-03-04;1.234,5;rome;1,5\n2021-03-05T10:00:00Z;None;oslo;2,5\n;0,25;rome;3,5\n";
  const Reading reading = ReadText(world, text);
  const RowBuilder builder(reading.description);
  const std::vector<std::string_view> days = {"2021-03-04", "2021-03-05T10:00:00Z", ""},
                                      prices = {"1.234,5", "None", "0,25"}, cities = {"rome", "oslo", "rome"},
                                      labels = {"1,5", "2,5", "3,5"};
  const std::vector<Cells> cells = {{"city", std::span<const std::string_view>(cities)},
                                    {"y", std::span<const std::string_view>(labels)},
                                    {"price", std::span<const std::string_view>(prices)},
                                    {"day", std::span<const std::string_view>(days)}};
  Rows rows;
  std::vector<NewName> names;
  const auto built = builder.FromColumns(3, cells, true, rows, names);
  ASSERT_TRUE(built.ok()) << built.error().text;
  EXPECT_TRUE(names.empty());
  Reading posted;
  posted.Append(rows);
  EXPECT_EQ(posted.labels, reading.labels);
  EXPECT_EQ(posted.indices, reading.indices);
  ASSERT_EQ(posted.values.size(), reading.values.size());
  for (std::size_t i = 0; i < posted.values.size(); ++i)
    EXPECT_TRUE(posted.values[i] == reading.values[i] ||
                (std::isnan(posted.values[i]) && std::isnan(reading.values[i])))
        << i;
  const std::vector<std::string_view> wrong = {"4 March", "", ""};
  const std::vector<Cells> bad = {{"day", std::span<const std::string_view>(wrong)}};
  const auto refused = builder.FromColumns(3, bad, false, rows, names);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().text,
            "column 'day', row 0: found '4 March', expected a date such as '2021-03-04' or '2021-03-04T12:34:56Z'");
}

TEST(CsvNotes, TellOfColumnsThatSayNothing) {
  std::string ids = "id,user_id,name,mixed,share,when,void,x,label\n", rows = ",x,label\n";
  for (int i = 0; i < 100; ++i) {
    ids += Str(i, ",", i * 7919 % 1000, ",name ", i, ",", i == 50 ? "unknown" : Str(i % 7), ",", i % 5, "%,",
               i % 28 + 1, ".03.2021,,", i % 13, ",", i % 2, "\n");
    rows += Str(i, ",", i % 13, ",", i % 2, "\n");
  }
  const Description description = Looked(ids);
  EXPECT_TRUE(Notes(description, Str("column 'id' counts the rows; leave it out with ", Option("ignore"), " id")));
  EXPECT_TRUE(Notes(description, "column 'user_id' is called like an id and read as a number"));
  EXPECT_TRUE(Notes(description, "column 'name' has 100 different texts in 100 rows"));
  EXPECT_TRUE(Notes(description, Str("column 'mixed' is read as categories because of 'unknown' in line 52; ",
                                     Option("numeric"), " mixed")));
  EXPECT_TRUE(Notes(description, "column 'share' is read as categories, since its numbers have more to them ('0%')"));
  EXPECT_TRUE(Notes(description, "column 'when' seems to hold dates ('1.03.2021')"));
  EXPECT_TRUE(Notes(description, "column 'void' has no value in the first 100 rows"));
  EXPECT_EQ(description.notes.size(), 7u);
  const Description index = Looked(rows);
  EXPECT_EQ(Kinds(index), (std::vector{Kind::kIgnored, Kind::kNumber, Kind::kLabel}));
  EXPECT_TRUE(Notes(index, "column 1 counts the rows"));
  InputOptions options;
  options.numeric = {"1"};
  EXPECT_EQ(Kinds(Looked(rows, options))[0], Kind::kNumber);
  std::string names = "n,y\n";
  for (int i = 0; i < 30; ++i) names += Str("u", i, ",", i % 2, "\n");
  EXPECT_TRUE(Notes(Looked(names), "column 'n' has 30 different texts in 30 rows"));
  options.numeric = {"mixed"};
  EXPECT_EQ(Kinds(Looked(ids, options))[3], Kind::kNumber);
  EXPECT_TRUE(
      Notes(Looked("x,when\n1,2021-03-04\n2,2021-03-05\n3,2021-03-06\n"), "the label, column 'when', holds dates"));
}

TEST(CsvShapes, ADelimiterAtTheEndOfEachLineIsNoColumn) {
  World world;
  for (const char* const text : {"a,b,\n1,0,\n2,1,\n", "1,0,\n2,1,\n"}) {
    const Reading reading = ReadText(world, text);
    EXPECT_EQ(reading.dense, (std::vector<float>{1, 2}));
    EXPECT_EQ(reading.labels, (std::vector<float>{0, 1}));
  }
}

TEST(CsvShapes, OneWrongRowDoesNotHideTheDelimiter) {
  const Description description = Looked("a;b;y\n1;2;0\n3;4;1;9\n5;6;0\n7;8;1\n");
  EXPECT_EQ(description.delimiter, ";");
  EXPECT_EQ(description.columns.size(), 3u);
}

TEST(CsvShapes, CommasWithinNumbersDelimitNothing) {
  World world;
  EXPECT_EQ(ReadText(world, "1,5;2,5;0\n3,5;4,25;1\n").dense, (std::vector<float>{1.5, 2.5, 3.5, 4.25}));
  EXPECT_EQ(ReadText(world, "1,5;0\n3,5;1\n").dense, (std::vector<float>{1.5, 3.5}));
}

TEST(CsvShapes, WhatIsWrongIsBlamed) {
  const struct {
    const char* text;
    const char* says;
  } table[] = {
      {"\"a,b,y\n1,2,0\n3,4,1\n", "input:1:1: found a quote that is never closed"},
      {"a,\"b,y\n1,\"x\",0\n3,\"z\",1\n", "input:1:3: found a quote that is never closed"},
      {"a,b,y\n1,\"x,0\n3,4,1\n", "input:2:3: found a quote that is never closed"},
      {"a,b\r1,2\r3,4\r", "input:1:4: found a carriage return and no line feed"},
      {"a,b,y\n1,2,3,0\n4,5,6,1\n7,8,9,0\n", "input:1:1: found 3 columns, but 4 in the lines below; expected a name"},
  };
  for (const auto& [text, says] : table) {
    SCOPED_TRACE(text);
    Described csv{kCsv};
    const auto result = csv.Describe(text);
    ASSERT_FALSE(result.ok());
    EXPECT_TRUE(result.error().text.starts_with(says)) << result.error().text;
  }
}

TEST(CsvShapes, TheLabelIsNotAColumnThatIsLeftOut) {
  InputOptions options;
  options.ignore = {"z"};
  EXPECT_EQ(Kinds(Looked("a,b,z\n1,0,x\n2,1,w\n", options)),
            (std::vector{Kind::kNumber, Kind::kLabel, Kind::kIgnored}));
}

TEST(CsvShapes, RowsOfMoreThanAMegabyteAreSeenWhole) {
  World world;
  std::string row;
  for (int c = 0; c < 150'000; ++c) row += "1.234567,";
  const std::string text = Str(row, "yes\n", row, "no\n", row, "yes\n");
  const Reading reading = ReadText(world, text);
  EXPECT_EQ(reading.description.features, 150'000u);
  EXPECT_EQ(reading.labels.size(), 3u);
  const std::string quoted = Str("a,b\n\"", std::string(1'500'000, '\n'), "\",1\nx,0\n");
  EXPECT_EQ(ReadText(world, quoted).labels.size(), 2u);
}

}  // namespace
}  // namespace freshet::data
