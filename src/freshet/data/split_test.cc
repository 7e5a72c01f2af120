#include "data/split.h"

#include <algorithm>

#include "base/faulty_files.h"
#include "data/packed_testing.h"
#include "data/world_testing.h"

namespace freshet::data {
namespace {

std::vector<std::string> SortedLines(const std::string& text) {
  std::vector<std::string> lines;
  for (const std::string_view line : Split(text, '\n'))
    if (!line.empty()) lines.emplace_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

struct Parts {
  SplitCounts counts;
  std::string train, test;
};

Result<Parts> SplitText(World& world, const std::string& text, SplitOptions options = {},
                        const InputOptions& input = {}) {
  options.paths = {world.Write("input", text)};
  options.train_path = world.Path("train");
  options.test_path = world.Path("test");
  Parts parts;
  parts.counts = TRY(SplitFiles(world.env(), options, input));
  parts.train = world.Read(options.train_path);
  parts.test = world.Read(options.test_path);
  EXPECT_EQ(world.Names(), (std::vector<std::string>{"input", "test", "train"})) << "nothing else is left";
  return parts;
}

// Lines of every format that has some; the header of those with one.
struct Sample {
  std::string header, rows;
};
std::vector<Sample> Samples(int rows) {
  std::vector<Sample> samples(6);
  samples[1].header = "x,\"the, name\",label\n";
  samples[2].header = "userId,movieId,rating,timestamp\n";
  for (int i = 0; i < rows; ++i) {
    samples[0].rows += Str(i % 2 ? 1 : -1, " ", i + 1, ":1\n");
    samples[1].rows += Str(i, ",\"say \"\"", i, "\"\"\",", i % 3 ? "yes" : "#no", "\n");
    samples[2].rows += Str(i % 7, ",", i, ",", 1 + i % 5, ",", 1'000'000 + i, "\n");
    samples[3].rows += Str(i % 7, "::", i, "::", 1 + i % 5, "::", 1'000'000 + i, "\r\n");
    samples[4].rows += Str(i % 2 ? 1 : -1, " |a b", i, "\n");
    samples[5].rows += Str(i % 2 ? "#" : "", i, ";", i % 9, ";7\n");  // # begins no comment here; one label only
  }
  return samples;
}

TEST(Split, PutsEveryLineIntoOnePartAndTheHeaderIntoBoth) {
  World world(2);
  for (const auto& [header, rows] : Samples(1'000))
    for (const bool shuffle : {false, true}) {
      SCOPED_TRACE(header + rows.substr(0, 30) + (shuffle ? "shuffled" : ""));
      SplitOptions options;
      options.test_share = 0.2;
      options.shuffle = shuffle;
      const auto result = SplitText(world, header + rows, options);
      ASSERT_TRUE(result.ok()) << result.error().text;
      const Parts& parts = result.value();
      ASSERT_TRUE(parts.train.starts_with(header) && parts.test.starts_with(header));
      EXPECT_EQ(parts.counts.train + parts.counts.test, 1'000u);
      EXPECT_NEAR(static_cast<double>(parts.counts.test), 200, 50);
      const std::string train = parts.train.substr(header.size()), test = parts.test.substr(header.size());
      EXPECT_EQ(SortedLines(train).size(), parts.counts.train);
      EXPECT_EQ(SortedLines(train + test), SortedLines(rows));
      // In order, unless shuffled.
      std::size_t at = 0;
      bool in_order = true;
      for (const std::string_view line : Split(train, '\n')) {
        const std::size_t found = rows.find(Str(line, "\n"), at);
        in_order &= line.empty() || found != std::string::npos;
        if (found != std::string::npos) at = found;
      }
      EXPECT_EQ(in_order, !shuffle);
    }
}

TEST(Split, IsTheSameForASeedAndAnotherForAnother) {
  World world;
  const std::string rows = Samples(200)[0].rows;
  SplitOptions options;
  options.shuffle = true;
  const auto first = SplitText(world, rows, options).value(), again = SplitText(world, rows, options).value();
  options.seed = 2;
  const auto other = SplitText(world, rows, options).value();
  EXPECT_EQ(first.train, again.train);
  EXPECT_EQ(first.test, again.test);
  EXPECT_NE(first.test, other.test);
}

TEST(Split, ByTimeTestsOnTheLatestRows) {
  World world;
  SplitOptions options;
  options.by_time = true;
  options.test_share = 0.25;
  for (const char* delimiter : {"::", "\t"}) {
    std::string rows;
    for (int i = 0; i < 400; ++i) rows += Str(i % 7, delimiter, i, delimiter, 3, delimiter, (i * 37) % 400, "\n");
    const auto result = SplitText(world, rows, options);
    ASSERT_TRUE(result.ok()) << result.error().text;
    EXPECT_EQ(result.value().counts.test, 100u);
    for (const std::string& line : SortedLines(result.value().test))
      EXPECT_GE(std::stoi(line.substr(line.rfind(delimiter) + std::string_view(delimiter).size())), 300);
  }
  InputOptions input;
  input.time_column = "when";
  std::string table = "when,x,label\n";
  for (int i = 0; i < 400; ++i) table += Str((i * 37) % 400, ",", i, ",", i % 2, "\n");
  const auto result = SplitText(world, table, options, input);
  ASSERT_TRUE(result.ok()) << result.error().text;
  EXPECT_EQ(result.value().counts.test, 100u);
}

TEST(Split, ByTimeNeedsTimes) {
  World world;
  SplitOptions options;
  options.by_time = true;
  const auto result = SplitText(world, "1 1:1\n-1 1:1\n", options);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Code::kInvalid);
}

TEST(Split, LeavesCommentsAndBlankLinesOutAndReadsPackedFiles) {
  World world;
  const auto parts = SplitText(world, Gzipped("# comment\n1 1:1\n\n-1 2:1 # with a comment\n  # another\n"));
  ASSERT_TRUE(parts.ok()) << parts.error().text;
  EXPECT_EQ(SortedLines(parts.value().train + parts.value().test),
            (std::vector<std::string>{"-1 2:1 # with a comment", "1 1:1"}));
}

TEST(Split, WritesTheHeaderWithoutWhatStandsBeforeIt) {
  World world;
  const auto parts = SplitText(world, "\xef\xbb\xbf\n\na,label\r\n1,0\r\n2,1\r\n");
  ASSERT_TRUE(parts.ok()) << parts.error().text;
  EXPECT_TRUE(parts.value().train.starts_with("a,label\n"));
  EXPECT_TRUE(parts.value().test.starts_with("a,label\n"));
}

TEST(Split, RefusesWhatItCannotDo) {
  World world;
  const auto quoted = SplitText(world, "\"a\nb\",1\nc,0\n");
  ASSERT_FALSE(quoted.ok());
  EXPECT_NE(quoted.error().text.find("line ends inside quotes"), std::string::npos);
  std::string picture = "\3";
  for (int i = 0; i < 3072; ++i) picture += static_cast<char>(i % 200);
  const auto images = SplitText(world, picture);
  ASSERT_FALSE(images.ok());
  EXPECT_EQ(images.error().code, Code::kInvalid);
  SplitOptions options;
  options.paths = {"-"};
  EXPECT_EQ(SplitFiles(world.env(), options, {}).error().code, Code::kInvalid);
  options.paths = {world.Write("input", "1 1:1\n-1 1:1\n")};
  options.train_path = options.test_path = world.Path("same");
  EXPECT_EQ(SplitFiles(world.env(), options, {}).error().code, Code::kInvalid);
  EXPECT_EQ(SplitText(world, "1 1:1\n1 x\n").error().code, Code::kBadInput);
}

TEST(Split, StopsWhenItIsToldAndLeavesNothing) {
  World world;
  const std::atomic<bool> stop{true};
  SplitOptions options;
  options.paths = {world.Write("input", "1 1:1\n-1 1:1\n")};
  options.train_path = world.Path("train");
  options.test_path = world.Path("test");
  options.stop = &stop;
  EXPECT_EQ(SplitFiles(world.env(), options, {}).error().code, Code::kStopped);
  EXPECT_FALSE(world.posix.Exists(options.train_path));
}

TEST(Split, LeavesNothingHalfWrittenWhicheverOperationFails) {
  World world;
  base::FaultyFiles faulty(world.posix);
  SplitOptions options;
  options.paths = {world.Write("input", Samples(50)[0].rows)};
  options.train_path = world.Path("train");
  options.test_path = world.Path("test");
  for (const bool shuffle : {false, true}) {
    options.shuffle = shuffle;
    bool failed = true;
    for (int nth = 1; failed; ++nth) {
      SCOPED_TRACE(Str("operation ", nth));
      std::filesystem::remove(options.train_path);
      std::filesystem::remove(options.test_path);
      faulty.FailAt(nth);
      const auto result = SplitFiles(world.env(faulty), options, {});
      failed = faulty.failures() > 0;
      EXPECT_EQ(result.ok(), !failed);
      for (const std::string& name : world.Names()) {
        EXPECT_TRUE(name == "input" || name == "train" || name == "test") << name;
        EXPECT_TRUE(world.Read(world.Path(name)).ends_with("\n"));
      }
    }
  }
}

}  // namespace
}  // namespace freshet::data
