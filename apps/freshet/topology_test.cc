// Which algorithms sums go by, and how rows are shared out: what a run finds out about its surroundings must not change
// when it is resumed.

#include <nlohmann/json.hpp>

#include "process_testing.h"

namespace freshet::cli {
namespace {

using Json = nlohmann::json;

class ChoiceTest : public testing::Test {
 protected:
  using Arguments = std::vector<std::string>;

  Finished Run(Arguments arguments, const Arguments& more = {}, const Surroundings& around = {}) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Process(scratch_, arguments, around).Wait();
  }
  Json MustRun(const Arguments& arguments, const Arguments& more = {}) {
    const Finished finished = Run(arguments, more);
    EXPECT_EQ(finished.code, 0) << finished.err;
    return finished.code == 0 ? Json::parse(finished.out) : Json();
  }
  void Generate() { ASSERT_EQ(Run({"data", "generate", "--kind", "sea", "--rows", "2000", "-o", "sea.csv"}).code, 0); }

  base::ScratchDirectory scratch_;
};

TEST_F(ChoiceTest, AMeasuredTableIsKeptByTheCheckpointAndWrittenWithTheModel) {
  Generate();
  const Arguments train = {"train", "sea.csv", "--batch", "30", "--epochs", "3", "--quiet", "--json", "--workers", "2"};
  const Arguments measured = {"--calibrate", "--checkpoint", "run.ckpt", "-o", "measured.model"};
  Arguments first = train;
  first.insert(first.end(), measured.begin(), measured.end());
  const Finished killed = Run(first, {}, {.environment = {{"FRESHET_FAULT", "checkpoint.written:2:kill"}}});
  ASSERT_EQ(killed.code, 128 + SIGKILL) << killed.err;
  const Json resumed = MustRun(train, measured);
  EXPECT_EQ(resumed.at("topology").at("chosen"), "resumed");
  const std::string table = resumed.at("topology").at("table");
  const Json repeated = MustRun(train, {"--algorithm-table", table, "-o", "repeated.model"});
  EXPECT_EQ(repeated.at("topology").at("chosen"), "given");
  EXPECT_EQ(repeated.at("topology").at("table"), table);
  EXPECT_EQ(scratch_.Read("measured.model"), scratch_.Read("repeated.model"));

  const Json fresh = MustRun(train, {"--calibrate", "-o", "fresh.model"});
  EXPECT_EQ(fresh.at("topology").at("chosen"), "measured");
  const std::string settings = scratch_.Read("fresh.model.toml");
  EXPECT_NE(settings.find(Str("algorithm-table = \"", fresh.at("topology").at("table").get<std::string>(), "\"")),
            std::string::npos)
      << settings;
  EXPECT_EQ(MustRun(train).at("topology").at("chosen"), "fixed");
}

TEST_F(ChoiceTest, RefusesTablesThatMakeNoSense) {
  Generate();
  const auto refused = [&](const Arguments& flags, const std::string& piece) {
    const Finished finished = Run({"train", "sea.csv", "--batch", "30", "--workers", "2", "--quiet"}, flags);
    EXPECT_EQ(finished.code, 2) << finished.err;
    EXPECT_NE(finished.err.find(piece), std::string::npos) << finished.err;
  };
  refused({"--calibrate", "--topology", "ring"}, "--topology ring leaves nothing to choose");
  refused({"--algorithm-table", "0 tree", "--topology", "ring"}, "--algorithm-table");
  refused({"--algorithm-table", "5 tree"}, "sizes begin at 0");
  refused({"--algorithm-table", "0 tee"}, "tree");
  const Finished tcp = Run({"launch", "-n", "2", "--", "train", "sea.csv", "--batch", "30", "--quiet"},
                           {"--algorithm-table", "0 native"});
  EXPECT_EQ(tcp.code, 2) << tcp.err;
  EXPECT_NE(tcp.err.find("native"), std::string::npos) << tcp.err;
}

// The first half of the bytes has rows six times as long as those of the second.
std::string LongRowsThenShortOnes() {
  std::string text;
  for (int row = 0; row < 1000; ++row) {
    text += row % 2 == 0 ? "1" : "-1";
    for (int feature = 1; feature <= 24; ++feature) text += Str(" ", feature * 10 + row % 7, ":1.5");
    text += "\n";
  }
  const std::size_t half = text.size();
  for (int row = 0; text.size() < 2 * half; ++row)
    text += row % 2 == 0 ? Str("1 ", 10 + row % 7, ":1.5 20:1\n") : Str("-1 ", 10 + row % 7, ":1.5 30:1\n");
  return text;
}

TEST_F(ChoiceTest, PartsOfUnequalRowsAreCutAnewAfterTheFirstEpochAndARunGoesOnWithThem) {
  const std::string text = LongRowsThenShortOnes();
  scratch_.Write("uneven.svm", text);
  const auto rows = static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
  const Arguments train = {"train", "uneven.svm", "--split", "bytes",     "--epochs", "3",           "--batch",
                           "20",    "--quiet",    "--json",  "--workers", "2",        "--optimizer", "adagrad"};
  const Json undisturbed = MustRun(train, {"-o", "undisturbed.model"});
  EXPECT_GT(undisturbed.at("imbalance").get<double>(), 0.4);
  std::uint64_t sum = 0;
  std::vector<double> later;  // rows of each worker in an epoch after the first
  for (const Json& worker : undisturbed.at("workers")) {
    const auto of_worker = worker.at("rows").get<std::uint64_t>();
    sum += of_worker;
    const std::uint64_t at_first = worker.at("rank") == 0 ? 1000 : rows - 1000;
    later.push_back(static_cast<double>(of_worker - at_first) / 2);
  }
  EXPECT_EQ(sum, 3 * rows);  // every row once an epoch
  for (const double each : later) EXPECT_NEAR(each, static_cast<double>(rows) / 2, 0.03 * static_cast<double>(rows));

  Arguments killed = train;
  killed.insert(killed.end(), {"--checkpoint", "run.ckpt", "-o", "resumed.model"});
  ASSERT_EQ(Run(killed, {}, {.environment = {{"FRESHET_FAULT", "checkpoint.save:3:kill"}}}).code, 128 + SIGKILL);
  MustRun(killed);
  EXPECT_EQ(scratch_.Read("undisturbed.model"), scratch_.Read("resumed.model"));
}

TEST_F(ChoiceTest, PartsThatCannotBeCutAnewAreSaidToBeUnequal) {
  std::string two_chunks_and_a_half;  // which workers take in turn
  for (int row = 0; row < 2000; ++row)
    two_chunks_and_a_half += row % 2 == 0 ? "1 1:1.25 2:0.75 4:1\n" : "-1 1:1.5 3:1.5\n";
  scratch_.Write("uneven.svm", two_chunks_and_a_half);
  ASSERT_EQ(std::system(Str("gzip ", scratch_ / "uneven.svm").c_str()), 0);
  const Arguments train = {"train", "--split", "bytes",     "--epochs", "2",           "--batch",
                           "20",    "--quiet", "--workers", "2",        "--optimizer", "adagrad"};
  const Finished packed = Run(train, {"uneven.svm.gz"});
  EXPECT_EQ(packed.code, 0) << packed.err;
  EXPECT_NE(packed.err.find("unequal shares of rows"), std::string::npos) << packed.err;
  scratch_.Write("plain.svm", LongRowsThenShortOnes());
  const Finished held = Run(train, {"plain.svm", "--holdout", "0.1"});
  EXPECT_NE(held.err.find("held out"), std::string::npos) << held.err;
  EXPECT_EQ(Run(train, {"plain.svm", "--part", "0/2"}).code, 2);
}

}  // namespace
}  // namespace freshet::cli
