#include "data/row_builder.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>

#include "base/random.h"
#include "data/images/pixels.h"
#include "data/world_testing.h"

namespace freshet::data {
namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

std::vector<std::uint32_t> Bits(std::span<const float> values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::isnan(value) ? 0x7fc00000 : std::bit_cast<std::uint32_t>(value));
  return bits;
}

// Bit for bit what a reader made of the text.
void ExpectSame(const Rows& rows, const Reading& reading) {
  Reading built;
  built.Append(rows);
  EXPECT_EQ(Bits(built.labels), Bits(reading.labels));
  EXPECT_EQ(Bits(built.weights), Bits(reading.weights));
  EXPECT_EQ(Bits(built.values), Bits(reading.values));
  EXPECT_EQ(Bits(built.dense), Bits(reading.dense));
  EXPECT_EQ(built.offsets, reading.offsets);
  EXPECT_EQ(built.indices, reading.indices);
  EXPECT_EQ(built.times, reading.times);
}

Reading ReadText(World& world, const std::string& text, const InputOptions& input, Description description = {},
                 bool grow = true) {
  ReaderOptions options = FilesAt({world.Write("input", text)});
  options.grow = grow;
  auto reading = ReadRows(world, options, input, std::move(description));
  EXPECT_TRUE(reading.ok()) << reading.error().text;
  return std::move(reading).value();
}

std::string Text(const char* format, double number) {
  char text[64];
  return {text, static_cast<std::size_t>(std::snprintf(text, sizeof text, format, number))};
}

std::string InQuotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

// A column of a random table: the values, and the same as text.
struct TestColumn {
  std::string name;
  std::vector<std::string> texts;  // as in the file, without quotes
  std::vector<double> doubles;
  std::vector<float> floats;
  std::vector<std::int64_t> wholes;
  std::vector<std::string_view> views;

  Cells cells() {
    if (!doubles.empty()) return {name, std::span<const double>(doubles)};
    if (!floats.empty()) return {name, std::span<const float>(floats)};
    if (!wholes.empty()) return {name, std::span<const std::int64_t>(wholes)};
    views.assign(texts.begin(), texts.end());
    return {name, std::span<const std::string_view>(views)};
  }
};

TestColumn Numbers(base::Random& random, std::string name, std::size_t rows) {
  TestColumn column{std::move(name), {}, {}, {}, {}, {}};
  const std::uint64_t kind = random.Below(4);
  for (std::size_t r = 0; r < rows; ++r) {
    const bool missing = kind != 2 && random.Below(6) == 0;
    const double number = std::ldexp(random.Normal(), static_cast<int>(random.Below(40)) - 20);
    if (kind == 0) column.doubles.push_back(missing ? kNone : number);
    if (kind == 1) column.floats.push_back(missing ? kNone : static_cast<float>(number));
    if (kind == 2) column.wholes.push_back(static_cast<std::int64_t>(random.Next()) >> random.Below(60));
    if (kind == 2)
      column.texts.push_back(Str(column.wholes.back()));
    else
      column.texts.push_back(missing ? "NA" : Text("%.17g", kind == 1 ? static_cast<float>(number) : number));
  }
  return column;
}

TestColumn Categories(base::Random& random, std::string name, std::size_t rows) {
  static constexpr std::string_view kWords[] = {"red", "blue green", "a,b", "say \"hi\"", "", "NA", "7", "ä", "null"};
  TestColumn column{std::move(name), {}, {}, {}, {}, {}};
  const bool whole = random.Below(3) == 0;
  for (std::size_t r = 0; r < rows; ++r) {
    if (whole) column.wholes.push_back(static_cast<std::int64_t>(random.Below(5)) * 1'234'567'890'123'456'789);
    column.texts.push_back(whole ? Str(column.wholes.back()) : std::string(kWords[random.Below(std::size(kWords))]));
  }
  return column;
}

TestColumn LabelsOf(base::Random& random, std::size_t rows, bool numbers) {
  TestColumn column{"label", {}, {}, {}, {}, {}};
  for (std::size_t r = 0; r < rows; ++r) {
    const std::uint64_t k = r < 3 ? r : random.Below(3);
    if (numbers) column.floats.push_back(static_cast<float>(k) / 10);
    column.texts.push_back(numbers ? Text("%g", static_cast<double>(k) / 10) : Str("class ", k));
  }
  return column;
}

std::string Table(const std::vector<TestColumn>& columns) {
  std::string text;
  for (const TestColumn& column : columns) text += Str(text.empty() ? "" : ",", column.name);
  for (std::size_t r = 0; r < columns[0].texts.size(); ++r) {
    text += "\n";
    for (std::size_t c = 0; c < columns.size(); ++c) text += Str(c == 0 ? "" : ",", InQuotes(columns[c].texts[r]));
  }
  return text + "\n";
}

TEST(RowBuilder, MakesTheRowsOfATableThatItsReaderMakes) {
  World world;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "tables");
    const std::size_t rows = 3 + random.Below(20);
    InputOptions input;
    input.format = "csv";
    input.header = "yes";
    input.label = "label";
    input.bits = random.Below(2) == 0 ? 0 : 9;
    input.standardise = random.Below(2) == 0;
    input.task = Labels::Kind::kClasses;
    std::vector<TestColumn> columns;
    for (std::uint64_t i = 1 + random.Below(5); i > 0; --i) columns.push_back(Numbers(random, Str("n", i), rows));
    for (std::uint64_t i = random.Below(4); i > 0; --i) {
      columns.push_back(Categories(random, Str("c", i), rows));
      input.categorical.push_back(columns.back().name);
    }
    columns.push_back(LabelsOf(random, rows, random.Below(2) == 0));
    if (random.Below(2) == 0) {
      input.weight_column = "w";
      columns.push_back({"w", std::vector<std::string>(rows, "0.25"), std::vector<double>(rows, 0.25), {}, {}, {}});
    }
    if (random.Below(2) == 0) {
      input.time_column = "t";
      columns.push_back(
          {"t", std::vector<std::string>(rows, "1500"), {}, {}, std::vector<std::int64_t>(rows, 1500), {}});
    }
    std::swap(columns[random.Below(columns.size())], columns[random.Below(columns.size())]);
    const Reading grown = ReadText(world, Table(columns), input);

    std::vector<Cells> cells;
    for (TestColumn& column : columns) cells.push_back(column.cells());
    std::reverse(cells.begin(), cells.end());  // the order does not matter
    Rows built;
    std::vector<NewName> names;
    const RowBuilder known(grown.description);
    ASSERT_TRUE(known.FromColumns(rows, cells, true, built, names).ok());
    ExpectSame(built, grown);
    EXPECT_TRUE(names.empty());

    Description fresh = grown.description;
    for (Dictionary& dictionary : fresh.dictionaries) dictionary = {};
    const Reading unseen = ReadText(world, Table(columns), input, fresh, false);
    const RowBuilder knowing_none(fresh);
    ASSERT_TRUE(knowing_none.FromColumns(rows, cells, true, built, names).ok());
    ExpectSame(built, unseen);
    AddNames(names, fresh, built);
    ExpectSame(built, grown);
  }
}

TEST(RowBuilder, MakesTheRowsOfSparseTextThatItsReaderMakes) {
  World world;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "sparse");
    const bool vw = seed % 3 == 0;
    InputOptions input;
    input.format = vw ? "vw" : "libsvm";
    input.bits = vw || random.Below(2) == 0 ? 1 + static_cast<int>(random.Below(20)) : 0;
    input.index_base = static_cast<int>(random.Below(2));
    input.task = Labels::Kind::kReal;
    std::vector<std::int64_t> starts = {0}, indices;
    std::vector<float> values, labels;
    std::string text;
    for (std::uint64_t r = 1 + random.Below(10); r > 0; --r) {
      labels.push_back(static_cast<float>(random.Normal()));
      text += Text("%.9g", static_cast<double>(labels.back())) + (vw ? " |" : "");
      std::int64_t index = input.index_base;
      for (std::uint64_t i = random.Below(8); i > 0; --i) {
        index += static_cast<std::int64_t>(random.Below(1 << random.Below(24)));
        indices.push_back(index++);
        values.push_back(static_cast<float>(random.Normal()));
        text += Str(" ", indices.back(), ":", Text("%.9g", static_cast<double>(values.back())));
      }
      starts.push_back(static_cast<std::int64_t>(indices.size()));
      text += "\n";
    }
    const Reading read = ReadText(world, text, input);
    const RowBuilder builder(read.description);
    Rows built;
    ASSERT_TRUE(builder.FromIndices(starts, indices, values, built).ok());
    ASSERT_TRUE(builder.SetLabels(std::span<const float>(labels), built).ok());
    ExpectSame(built, read);
  }
}

TEST(RowBuilder, TakesTheSameIndicesAsTheLibsvmParser) {
  World world;
  for (const int base : {0, 1}) {
    for (const std::int64_t index : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1 << 28},
                                     std::int64_t{(1 << 28) - 1}, std::int64_t{(1 << 28) + 1}, std::int64_t{1} << 40}) {
      SCOPED_TRACE(Str("base ", base, ", index ", index));
      InputOptions input;
      input.format = "libsvm";
      input.index_base = base;
      const auto read = ReadRows(world, FilesAt({world.Write("input", Str("1 ", index, ":2\n"))}), input);
      Description description;
      description.format = "libsvm";
      description.index_base = base;
      Rows rows;
      const std::int64_t starts[] = {0, 1};
      const float value = 2;
      const auto built = RowBuilder(description).FromIndices(starts, {&index, 1}, {&value, 1}, rows);
      EXPECT_EQ(built.ok(), read.ok());
    }
  }
}

TEST(RowBuilder, MakesTheRowsOfRatingsThatTheirReaderMakes) {
  World world;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "ratings");
    const std::size_t rows = 1 + random.Below(30);
    InputOptions input;
    input.format = "ratings";
    input.joint_ids = random.Below(2) == 0;
    const bool times = random.Below(2) == 0, whole = random.Below(2) == 0;
    TestColumn user{"user", {}, {}, {}, {}, {}}, item{"item", {}, {}, {}, {}, {}}, rating{"rating", {}, {}, {}, {}, {}},
        time{"timestamp", {}, {}, {}, {}, {}};
    std::string text;
    for (std::size_t r = 0; r < rows; ++r) {
      user.wholes.push_back(static_cast<std::int64_t>(random.Below(9)) + 1'000'000'000'000'000'000);
      user.texts.push_back(Str(user.wholes.back()));
      item.texts.push_back(Str("film ", random.Below(9)));
      rating.doubles.push_back(static_cast<double>(random.Below(10)) / 2);
      time.wholes.push_back(static_cast<std::int64_t>(random.Below(1 << 30)));
      text += Str(user.texts.back(), "\t", item.texts.back(), "\t", rating.doubles.back());
      text += times ? Str("\t", time.wholes.back(), "\n") : "\n";
    }
    if (!whole) user.wholes.clear();
    const Reading grown = ReadText(world, text, input);
    std::vector<Cells> cells = {item.cells(), user.cells(), rating.cells()};
    if (times) cells.push_back(time.cells());
    Rows built;
    std::vector<NewName> names;
    Description fresh = grown.description;
    ASSERT_TRUE(RowBuilder(fresh).FromColumns(rows, cells, true, built, names).ok());
    ExpectSame(built, grown);
    for (Dictionary& dictionary : fresh.dictionaries) dictionary = {};
    ASSERT_TRUE(RowBuilder(fresh).FromColumns(rows, cells, true, built, names).ok());
    EXPECT_EQ(names.size(), 2 * rows);
    for (const std::uint32_t index : built.indices.span()) EXPECT_EQ(index, kUnseen);
    AddNames(names, fresh, built);
    ExpectSame(built, grown);
  }
}

TEST(RowBuilder, ScalesPixelsAsTheirParsersDo) {
  Description description;
  description.format = "idx";
  description.dense = true;
  description.features = 128;
  description.scale = 1.0 / 255;
  std::string bytes;
  std::vector<float> values;
  for (int i = 0; i < 256; ++i) {
    bytes += static_cast<char>(i);
    values.push_back(static_cast<float>(i));
  }
  Rows rows;
  ASSERT_TRUE(RowBuilder(description).FromNumbers(values, rows).ok());
  Buffer<float> expected;
  AppendPixels(bytes, static_cast<float>(description.scale), expected);
  EXPECT_EQ(rows.size(), 2u);
  EXPECT_EQ(Bits(rows.dense.span()), Bits(expected.span()));
}

// A table of two numbers, a category and a label.
Description SmallTable() {
  Description description;
  description.format = "csv";
  description.delimiter = ",";
  description.columns = {{"age", Column::Kind::kNumber},
                         {"city", Column::Kind::kCategory},
                         {"income", Column::Kind::kNumber},
                         {"label", Column::Kind::kLabel},
                         {"note", Column::Kind::kIgnored}};
  description.features = 2;
  description.standardise = true;
  description.moments = Moments(2);
  description.dictionaries.resize(1);
  description.dictionaries[0].Add("0=Rome");
  description.labels.kind = Labels::Kind::kBinary;
  description.labels.names = {"no", "yes"};
  description.labels.Index();
  return description;
}

TEST(RowBuilder, TakesAColumnThatIsLeftOutAsMissing) {
  const Description description = SmallTable();
  const std::vector<double> income = {10, 20};
  const std::vector<std::string_view> city = {"Rome", "Oslo"}, note = {"x", "y"};
  const std::vector<Cells> cells = {{"income", income}, {"city", city}, {"note", note}};
  Rows rows;
  std::vector<NewName> names;
  ASSERT_TRUE(RowBuilder(description).FromColumns(2, cells, false, rows, names).ok());
  EXPECT_EQ(Bits(rows.values.span()), Bits(std::vector<float>{kNone, 10, 1, kNone, 20, 1}));
  EXPECT_EQ((std::vector<std::uint32_t>(rows.indices.span().begin(), rows.indices.span().end())),
            (std::vector<std::uint32_t>{0, 1, 2, 0, 1, kUnseen}));
  EXPECT_TRUE(std::isnan(rows.labels[0]));
  ASSERT_EQ(names.size(), 1u);
  EXPECT_EQ(names[0].entry, 5u);
  EXPECT_EQ(names[0].space, 0u);
  EXPECT_EQ(names[0].name, "Oslo");
}

TEST(RowBuilder, TakesAnUnknownLabelForNoneUnlessRowsNeedOne) {
  const Description description = SmallTable();
  const std::vector<std::string_view> labels = {"yes", "perhaps"};
  const std::vector<Cells> cells = {{"label", labels}};
  Rows rows;
  std::vector<NewName> names;
  const RowBuilder builder(description);
  ASSERT_TRUE(builder.FromColumns(2, cells, false, rows, names).ok());
  EXPECT_EQ(Bits(rows.labels.span()), Bits(std::vector<float>{1, kNone}));
  EXPECT_EQ(builder.FromColumns(2, cells, true, rows, names).error().text,
            "column 'label', row 1: found 'perhaps', expected one of no, yes");
}

TEST(RowBuilder, SaysWhatIsWrongWithAColumn) {
  const Description description = SmallTable();
  const RowBuilder builder(description);
  Rows rows;
  std::vector<NewName> names;
  const auto said = [&](const Cells& cells, bool labelled = false) {
    const auto result = builder.FromColumns(1, {&cells, 1}, labelled, rows, names);
    EXPECT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, Code::kBadInput);
    return result.error().text;
  };
  const std::string_view word = "old", nul("a\0b", 3);
  const double huge = 1e39;
  EXPECT_EQ(said({"age", std::span(&word, 1)}), "column 'age', row 0: found 'old', expected a number");
  EXPECT_EQ(said({"age", std::span(&huge, 1)}), "column 'age', row 0: found 1e+39, expected a finite number");
  EXPECT_EQ(said({"ages", std::span(&huge, 1)}), "column 'ages': the model has no such column");
  EXPECT_EQ(said({"city", std::span(&nul, 1)}),
            "column 'city', row 0: found 'a\\x00b', expected text without NUL bytes");
  EXPECT_EQ(said({"city", std::span(&word, 1)}, true), "row 0: found no label, expected one of no, yes");
}

TEST(RowBuilder, SaysWhatIsWrongWithIndices) {
  Description description;
  description.format = "libsvm";
  const RowBuilder builder(description);
  const auto said = [&](std::vector<std::int64_t> starts, std::vector<std::int64_t> indices,
                        std::vector<float> values) {
    Rows rows;
    const auto result = builder.FromIndices(starts, indices, values, rows);
    return result.ok() ? "" : result.error().text;
  };
  EXPECT_EQ(said({0, 1, 2}, {1, 1}, {5, 6}), "");
  EXPECT_EQ(said({0}, {}, {}), "");
  EXPECT_EQ(said({}, {}, {}), "found no start of a row, expected 0");
  EXPECT_EQ(said({1, 2}, {1, 2}, {5, 6}), "the first row starts at 1, expected 0");
  EXPECT_EQ(said({0, 1}, {1, 2}, {5, 6}), "the last row ends at 1, expected 2, the number of indices");
  EXPECT_EQ(said({0, 3}, {1, 2}, {5, 6}), "row 0 starts at 0 and ends at 3, expected an end from 0 to 2");
  EXPECT_EQ(said({0, 2, 1}, {1, 2}, {5, 6}), "row 1 starts at 2 and ends at 1, expected an end from 2 to 2");
  EXPECT_EQ(said({0, -1}, {}, {}), "row 0 starts at 0 and ends at -1, expected an end from 0 to 0");
  EXPECT_EQ(said({0, 2}, {1, 2}, {5}), "2 indices, but 1 values");
  EXPECT_EQ(said({0, 1}, {0}, {5}), "row 0: index 0, expected 1 or more");
  EXPECT_EQ(said({0, 1}, {std::numeric_limits<std::int64_t>::min()}, {5}),
            "row 0: index -9223372036854775808, expected 1 or more");
  EXPECT_EQ(said({0, 1}, {std::numeric_limits<std::int64_t>::max()}, {5}),
            "row 0: index 9223372036854775807, expected at most 268435456");
  EXPECT_EQ(said({0, 2}, {4, 3}, {5, 6}), "row 0: index 3 after index 4, expected ascending order");
  EXPECT_EQ(said({0, 1}, {1}, {kNone}), "value 0: found nan, expected a finite number");
}

TEST(RowBuilder, ReadsLabelsWhateverTheirType) {
  Description description;
  description.format = "libsvm";
  description.labels.kind = Labels::Kind::kClasses;
  description.labels.names = {"0.1", "2", "cat"};
  description.labels.Index();
  const RowBuilder builder(description);
  EXPECT_EQ(builder.Label(0.1).value(), 0);
  EXPECT_EQ(builder.Label("+2.0").value(), 1);
  EXPECT_EQ(builder.Label("cat").value(), 2);
  EXPECT_EQ(builder.Label("dog").error().text, "label 'dog', expected one of 0.1, 2, cat");
  EXPECT_EQ(builder.Label(3.0).error().text, "label 3, expected one of 0.1, 2, cat");
  Rows rows;
  ASSERT_TRUE(builder.FromIndices(std::vector<std::int64_t>{0, 0, 0}, {}, {}, rows).ok());
  ASSERT_TRUE(builder.SetLabels(std::vector<float>{0.1f, 2}, rows).ok());
  EXPECT_EQ(Bits(rows.labels.span()), Bits(std::vector<float>{0, 1}));
  EXPECT_EQ(builder.SetLabels(std::vector<std::int64_t>{2, 7}, rows).error().text,
            "row 1: label 7, expected one of 0.1, 2, cat");
}

}  // namespace
}  // namespace freshet::data
