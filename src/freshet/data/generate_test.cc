#include "data/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "data/number.h"
#include "data/parse_testing.h"

namespace freshet::data {
namespace {

class StringFile final : public base::OutputFile {
 public:
  Result<void> Write(std::span<const std::byte> bytes) override {
    if (writes_left == 0) return Error{Code::kIo, "disk full"};
    --writes_left;
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  }
  Result<void> Sync() override { return {}; }

  std::string text;
  int writes_left = 1'000'000;
};

std::string TextOf(const GenerateOptions& options) {
  StringFile file;
  const auto result = Generate(options, file);
  EXPECT_TRUE(result.ok()) << result.error().text;
  return std::move(file.text);
}

// Lines as lists of numbers, without a header.
std::vector<std::vector<double>> Table(const std::string& text, char delimiter) {
  std::vector<std::vector<double>> table;
  for (const std::string_view line : Split(text, '\n')) {
    if (line.empty() || line[0] == 'x') continue;
    table.emplace_back();
    for (const std::string_view field : Split(line, delimiter)) {
      if (field.empty()) continue;  // between the colons of ::
      double number = 0;
      EXPECT_TRUE(ParseNumber(field, number)) << line;
      table.back().push_back(number);
    }
  }
  return table;
}

struct Entry {
  std::uint32_t index;
  double value;
};
struct SparseRow {
  int label;
  std::vector<Entry> entries;
};

std::vector<SparseRow> SparseRows(const std::string& text) {
  std::vector<SparseRow> rows;
  for (const std::string_view line : Split(text, '\n')) {
    if (line.empty()) continue;
    const auto words = Split(line, ' ');
    EXPECT_TRUE(words[0] == "+1" || words[0] == "-1") << words[0];
    rows.push_back({words[0] == "+1" ? 1 : -1, {}});
    for (std::size_t i = 1; i < words.size(); ++i) {
      double index = 0, value = 0;
      const std::size_t colon = words[i].find(':');
      EXPECT_TRUE(ParseNumber(words[i].substr(0, colon), index) && ParseNumber(words[i].substr(colon + 1), value))
          << words[i];
      rows.back().entries.push_back({static_cast<std::uint32_t>(index), value});
    }
  }
  return rows;
}

// How often logistic regression, learning as it goes, is wrong on the last third of the rows.
double ErrorOfALearner(const std::vector<SparseRow>& rows, std::size_t features, double rate) {
  std::vector<double> weights(features + 1);
  std::size_t wrong = 0, judged = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    double score = weights[0];
    for (const auto& [index, value] : rows[r].entries) score += weights[index] * value;
    if (r >= rows.size() * 2 / 3) {
      ++judged;
      wrong += (score > 0) != (rows[r].label > 0) ? 1 : 0;
    }
    const double step = rate * rows[r].label / (1 + std::exp(rows[r].label * score));
    weights[0] += step;
    for (const auto& [index, value] : rows[r].entries) weights[index] += step * value;
  }
  return static_cast<double>(wrong) / static_cast<double>(judged);
}

TEST(Generate, GivesTheSameBytesForTheSameSeedAndOthersForAnother) {
  for (const std::string& kind : GeneratorKinds()) {
    SCOPED_TRACE(kind);
    const std::string once = TextOf({.kind = kind, .rows = 300, .seed = 5});
    EXPECT_EQ(once, TextOf({.kind = kind, .rows = 300, .seed = 5}));
    EXPECT_NE(once, TextOf({.kind = kind, .rows = 300, .seed = 6}));
    EXPECT_EQ(once.back(), '\n');
  }
}

TEST(Generate, MakesEachRowWhateverStandsBeforeIt) {
  for (const std::string& kind : GeneratorKinds()) {
    SCOPED_TRACE(kind);
    const std::string whole = TextOf({.kind = kind, .rows = 300, .drift_rows = 60});
    const std::string beginning = TextOf({.kind = kind, .rows = 200, .drift_rows = 60});
    const std::string rest = TextOf({.kind = kind, .rows = 100, .first_row = 200, .drift_rows = 60});
    const std::size_t header = TextOf({.kind = kind, .rows = 0}).size();
    EXPECT_EQ(whole, beginning + rest.substr(header));
  }
}

TEST(Generate, WritesFormatsThatAreRecognised) {
  const std::map<std::string, std::string> formats = {
      {"sea", "csv"}, {"hyperplane", "csv"}, {"url-like", "libsvm"}, {"ratings", "ratings"}};
  for (const std::string& kind : GeneratorKinds()) {
    if (kind == "grammar") continue;  // text has no marks of its own, and is only read when asked for
    SCOPED_TRACE(kind);
    const TestHead head(TextOf({.kind = kind, .rows = 100}));
    const auto format = SniffFormat(head);
    ASSERT_TRUE(format.ok()) << format.error().text;
    EXPECT_EQ(format.value()->name, formats.at(kind));
  }
}

TEST(Generate, SaysWhatItCannotMake) {
  StringFile file;
  for (const GenerateOptions& options :
       {GenerateOptions{.kind = "see"}, GenerateOptions{.kind = "hyperplane", .features = 1},
        GenerateOptions{.kind = "ratings", .users = 0}, GenerateOptions{.kind = "ratings", .items = 1ull << 40}}) {
    const auto result = Generate(options, file);
    ASSERT_FALSE(result.ok()) << options.kind;
    EXPECT_EQ(result.error().code, Code::kInvalid);
    EXPECT_NE(result.error().text.find("expected "), std::string::npos);
  }
  EXPECT_TRUE(file.text.empty());
}

TEST(Generate, StopsAtTheFirstWriteThatFails) {
  StringFile file;
  file.writes_left = 1;
  const auto result = Generate({.kind = "sea", .rows = 200'000}, file);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Code::kIo);
  EXPECT_GE(file.text.size(), 1u << 20);
  EXPECT_LT(file.text.size(), 2u << 20);
}

TEST(Generate, SeaFollowsFourThresholdsWithATenthOfNoise) {
  constexpr std::size_t kRows = 40'000;
  const std::string text = TextOf({.kind = "sea", .rows = kRows, .seed = 3});
  EXPECT_EQ(text.find("x1,x2,x3,label\n"), 0u);
  const auto table = Table(text, ',');
  ASSERT_EQ(table.size(), kRows);
  for (std::size_t part = 0; part < 4; ++part) {
    const double theta = std::array{8.0, 9.0, 7.0, 9.5}[part];
    std::size_t noisy = 0;
    for (std::size_t n = part * kRows / 4; n < (part + 1) * kRows / 4; ++n) {
      ASSERT_EQ(table[n].size(), 4u);
      for (int j = 0; j < 3; ++j) ASSERT_TRUE(table[n][j] >= 0 && table[n][j] <= 10);
      noisy += (table[n][0] + table[n][1] > theta + 1e-9) != (table[n][3] == 1) ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(noisy) / (kRows / 4), 0.10, 0.012) << "concept " << part;
  }
}

TEST(Generate, HyperplaneIsBalancedAndLinearUpToItsNoise) {
  constexpr std::size_t kRows = 30'000;
  const std::string text = TextOf({.kind = "hyperplane", .rows = kRows, .drift_rows = 1ull << 40, .features = 4});
  EXPECT_EQ(text.find("x1,x2,x3,x4,label\n"), 0u);
  std::vector<SparseRow> rows;
  double positive = 0;
  for (const auto& line : Table(text, ',')) {
    ASSERT_EQ(line.size(), 5u);
    rows.push_back({line[4] == 1 ? 1 : -1, {}});
    positive += line[4];
    for (std::uint32_t j = 0; j < 4; ++j) rows.back().entries.push_back({j + 1, line[j] - 0.5});
  }
  ASSERT_EQ(rows.size(), kRows);
  EXPECT_NEAR(positive / kRows, 0.5, 0.02);
  EXPECT_NEAR(ErrorOfALearner(rows, 4, 0.05), 0.06, 0.012);
}

TEST(Generate, HyperplaneTurnsRoundInAHalfTurn) {
  // Half a turn on, every side is the other: the same model is wrong nearly always.
  constexpr std::size_t kRows = 3'000;
  const auto rows_at = [](std::uint64_t first_row) {
    std::vector<SparseRow> rows;
    for (const auto& line :
         Table(TextOf({.kind = "hyperplane", .rows = kRows, .first_row = first_row, .drift_rows = 1'000'000}), ',')) {
      rows.push_back({line[10] == 1 ? 1 : -1, {}});
      for (std::uint32_t j = 0; j < 10; ++j) rows.back().entries.push_back({j + 1, line[j] - 0.5});
    }
    return rows;
  };
  auto rows = rows_at(0);
  for (SparseRow row : rows_at(2'000'000)) {
    row.label = -row.label;
    rows.push_back(row);
  }
  EXPECT_LT(ErrorOfALearner(rows, 10, 0.5), 0.12);
}

TEST(Generate, UrlLikeRowsHaveTheShapeOfTheUrlSet) {
  const auto rows = SparseRows(TextOf({.kind = "url-like", .rows = 5'000}));
  ASSERT_EQ(rows.size(), 5'000u);
  std::size_t positive = 0, entries = 0;
  std::set<std::uint32_t> distinct;
  for (const SparseRow& row : rows) {
    positive += row.label > 0 ? 1 : 0;
    entries += row.entries.size();
    std::uint32_t last = 0;
    for (std::size_t i = 0; i < row.entries.size(); ++i) {
      const auto [index, value] = row.entries[i];
      ASSERT_GT(index, last) << "ascending, each once";
      last = index;
      distinct.insert(index);
      if (i < 20) {
        ASSERT_LE(index, 64u);
        ASSERT_TRUE(value >= 0 && value <= 1);
        ASSERT_NEAR(value * 10'000, std::round(value * 10'000), 1e-6) << "four decimals";
      } else {
        ASSERT_TRUE(index >= 65 && index <= 3'231'961);
        ASSERT_EQ(value, 1);
      }
    }
  }
  EXPECT_NEAR(static_cast<double>(positive) / 5'000, 1.0 / 3, 0.04);
  EXPECT_NEAR(static_cast<double>(entries) / 5'000, 98, 2);
  EXPECT_GT(distinct.size(), 50'000u);
}

TEST(Generate, UrlLikeLabelsFollowALinearModel) {
  const auto rows = SparseRows(TextOf({.kind = "url-like", .rows = 30'000}));
  const double error = ErrorOfALearner(rows, 3'231'961, 0.05);
  EXPECT_LT(error, 0.25) << "a third are positive";
  EXPECT_GT(error, 0.03) << "the noise is unlearnable";
}

TEST(Generate, RatingsHaveALongTailAndRisingTimes) {
  constexpr std::size_t kRows = 50'000;
  std::string text = TextOf({.kind = "ratings", .rows = kRows});
  EXPECT_NE(text.find("::"), std::string::npos);
  const auto table = Table(text, ':');
  ASSERT_EQ(table.size(), kRows);
  std::map<double, std::size_t> of_item;
  double sum = 0, squares = 0, last_time = 0;
  for (const auto& row : table) {
    ASSERT_EQ(row.size(), 4u);
    ASSERT_TRUE(row[0] >= 1 && row[0] <= 6040 && row[1] >= 1 && row[1] <= 3706);
    ASSERT_TRUE(row[2] == std::floor(row[2]) && row[2] >= 1 && row[2] <= 5);
    ASSERT_GT(row[3], last_time);
    last_time = row[3];
    sum += row[2];
    squares += row[2] * row[2];
    ++of_item[row[1]];
  }
  const double mean = sum / kRows;
  EXPECT_NEAR(mean, 3.5, 0.15);
  EXPECT_NEAR(std::sqrt(squares / kRows - mean * mean), 1.05, 0.1) << "the model's spread and the noise's";
  std::vector<std::size_t> counts;
  for (const auto& [item, count] : of_item) counts.push_back(count);
  std::sort(counts.rbegin(), counts.rend());
  EXPECT_LT(counts[0], kRows / 100) << "no single item dominates";
  std::size_t popular = 0;
  for (std::size_t i = 0; i < 3706 / 5; ++i) popular += counts[i];
  EXPECT_GT(popular, kRows / 2) << "a fifth of the items have most of the ratings";
}

}  // namespace
}  // namespace freshet::data
