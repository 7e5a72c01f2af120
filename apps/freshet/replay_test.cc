// The replay verb as its users meet it.

#include <csignal>
#include <nlohmann/json.hpp>

#include "process_testing.h"

namespace freshet::cli {
namespace {

using Json = nlohmann::json;

class ReplayVerb : public testing::Test {
 protected:
  Finished Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "replay");
    return Process(scratch_, arguments, {}).Wait();
  }
  void Generate(const std::string& kind, int rows, const std::string& name) {
    const Finished made =
        Process(scratch_, {"data", "generate", "--kind", kind, "--rows", Str(rows), "-o", name}, {}).Wait();
    ASSERT_EQ(made.code, 0) << made.err;
  }
  static Json WithoutTimes(const Finished& finished) {
    EXPECT_EQ(finished.code, 0) << finished.err;
    Json json = Json::parse(finished.out);
    json.erase("settings");
    for (const char* const list : {"methods", "runs"})
      for (Json& entry : json[list])
        for (const char* const key : {"seconds", "longest_iteration_seconds", "wall_seconds"}) entry.erase(key);
    return json;
  }

  base::ScratchDirectory scratch_;
};

TEST_F(ReplayVerb, ComparesMethodsAndSaysTheSameForAnyNumberOfThreads) {
  Generate("sea", 4000, "sea.csv");
  const Json one = WithoutTimes(Run({"sea.csv", "--json", "--seeds", "2", "--threads", "1"}));
  const Json three = WithoutTimes(Run({"sea.csv", "--json", "--seeds", "2", "--threads", "3"}));
  EXPECT_EQ(one, three);
  EXPECT_EQ(one["rows"], 4000);
  EXPECT_EQ(one["methods"].size(), 5u);
  EXPECT_EQ(one["runs"].size(), 10u);
  EXPECT_EQ(one["runs"][0]["method"], "baseline");
  EXPECT_FALSE(one["runs"][0]["curve"].empty());
}

TEST_F(ReplayVerb, PrintsATableAndDrawsCurves) {
  Generate("sea", 3000, "sea.csv");
  const Finished finished =
      Run({"sea.csv", "--compare", "velox,continuous", "--tune", "--curve", "curve.svg", "--seeds", "2"});
  EXPECT_EQ(finished.code, 0) << finished.err;
  for (const char* const piece :
       {"3,000 rows, linear, adagrad", "light iterations every 15 rows", "steps/velox", "continuous", "±", "curve.svg"})
    EXPECT_NE(finished.out.find(piece), std::string::npos) << piece << "\n" << finished.out;
  EXPECT_TRUE(scratch_.Read("curve.svg").starts_with("<svg"));
}

TEST_F(ReplayVerb, DrawsWhatDriftsAsADriftWithMarksAndRoundTicksUnderATitleThatFits) {
  // Two concepts: whatever was right before row 3,000 is wrong afterwards.
  std::string rows = "x,y,label\n";
  for (int i = 0; i < 6000; ++i) {
    const int x = i * 37 % 100, y = i * 61 % 100;
    rows += Str(x, ",", y, ",", (x > y) != (i >= 3000) ? 1 : 0, "\n");
  }
  scratch_.Write("turn.csv", rows);
  const Finished finished = Run({"turn.csv", "--compare", "baseline+,velox", "--curve", "turn.svg", "--json"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const Json report = Json::parse(finished.out);
  for (const Json& run : report["runs"]) {
    ASSERT_FALSE(run["drifts_at"].empty()) << run["method"];
    EXPECT_GT(run["drifts_at"][0], 2990);
    EXPECT_LT(run["drifts_at"][0], 3300);
  }
  EXPECT_EQ(report["runs"][1]["retrained_at"].size(), 5u);
  const std::string svg = scratch_.Read("turn.svg");
  std::size_t titles = 0;
  for (const std::string_view line : Split(svg, '\n')) {
    if (line.find("class=\"title\"") == std::string_view::npos) continue;
    ++titles;
    const auto begin = line.find('>') + 1;
    EXPECT_LE(line.find('<', begin) - begin, 95u) << line;
  }
  EXPECT_GE(titles, 2u);
  for (const char* const piece : {">drift found<", ">retrained<", ">2000<", ">4000<", ">error of the last 27"})
    EXPECT_NE(svg.find(piece), std::string::npos) << piece;
}

TEST_F(ReplayVerb, ChoosesTheUpdateRuleAsTrainDoes) {
  Generate("sea", 300, "sea.csv");
  std::string table, sparse;
  for (int i = 0; i < 300; ++i) {
    table += Str(i % 7, i % 3 == 0 ? ",Rome," : ",Oslo,", i % 3 == 0 ? "yes\n" : "no\n");
    sparse += Str(i % 2 == 0 ? "1 " : "-1 ", 1 + i % 5, ":1\n");
  }
  scratch_.Write("table.csv", table);
  scratch_.Write("sparse.svm", sparse);
  Generate("ratings", 600, "ratings.dat");
  for (const auto& [data, rule] : std::vector<std::pair<std::string, std::string>>{{"sea.csv", "adagrad"},
                                                                                   {"table.csv", "adaptive"},
                                                                                   {"sparse.svm", "adaptive"},
                                                                                   {"ratings.dat", "adaptive"}}) {
    const Finished finished = Run({data, "--method", "baseline+"});
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_NE(finished.out.find(Str(", ", rule, " at rate ")), std::string::npos) << data << "\n" << finished.out;
  }
}

TEST_F(ReplayVerb, BeginsWithNothingWhenToldTo) {
  Generate("sea", 4000, "sea.csv");
  const Json cold = WithoutTimes(Run({"sea.csv", "--initial", "0", "--json"}));
  EXPECT_EQ(cold["initial_rows"], 0);
  for (const Json& run : cold["runs"]) {
    SCOPED_TRACE(run["method"]);
    if (run["method"] == "baseline")
      EXPECT_EQ(run["steps"], 0);
    else
      EXPECT_LT(run["error"], 0.2);
  }
  const Finished finished = Run({"sea.csv", "--initial", "0"});
  EXPECT_NE(finished.out.find("begun with nothing"), std::string::npos) << finished.out;
}

TEST_F(ReplayVerb, RefusesWhatItCannotDoInOneClearLine) {
  Generate("sea", 100, "sea.csv");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"sea.csv", "--workers", "2"}, "replay --workers N: iterations are run by one worker so far; leave it out"},
      {{"sea.csv", "--compare", "velox,best"},
       "method 'best': expected one of static, baseline, baseline+, velox, continuous"},
      {{"sea.csv", "--order", "time"}, "the rows have no times to order them by; name the column with --time-column"},
      {{"sea.csv", "--initial", "0", "--tune"},
       "--tune looks at the initial part of the rows, of which --initial 0 leaves none"},
      {{"sea.csv", "--test-rows", "100"}, "100 rows to test on, of 100 there are"},
  };
  for (const auto& [arguments, line] : cases) {
    const Finished finished = Run(arguments);
    EXPECT_EQ(finished.code, 2);
    EXPECT_EQ(finished.ErrorLines(), std::vector{line});
  }
}

TEST_F(ReplayVerb, StopsOnCtrlC) {
  Generate("sea", 100'000, "sea.csv");
  Process process(scratch_, {"replay", "sea.csv", "--seeds", "1000", "--threads", "1"}, {});
  usleep(50'000);  // it cannot be done by then; whatever it is doing, it must stop
  kill(process.pid(), SIGINT);
  EXPECT_EQ(process.Wait().code, 130);
}

}  // namespace
}  // namespace freshet::cli
