// --trace as its users meet it: the file is parsed, and what it shows must be possible.

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "process_testing.h"

namespace freshet::cli {
namespace {

using Json = nlohmann::json;

class TrainTraceTest : public testing::Test {
 protected:
  using Arguments = std::vector<std::string>;

  Finished Run(const Arguments& arguments) { return Process(scratch_, arguments, {}).Wait(); }
  void SetUp() override {
    ASSERT_EQ(Run({"data", "generate", "--kind", "sea", "--rows", "2000", "-o", "sea.csv"}).code, 0);
  }
  Json Events(const std::string& name) const { return Json::parse(scratch_.Read(name)); }

  base::ScratchDirectory scratch_;
};

double Begin(const Json& span) { return span.at("ts"); }
double End(const Json& span) { return span.at("ts").get<double>() + span.at("dur").get<double>(); }

std::vector<Json> Spans(const Json& events, const std::string& name) {
  std::vector<Json> spans;
  for (const Json& event : events)
    if (event.at("ph") == "X" && event.at("name") == name) spans.push_back(event);
  return spans;
}

// On each track, spans follow or contain one another.
void ExpectNested(const Json& events) {
  constexpr double kRounding = 0.002;  // microseconds
  std::map<std::pair<int, int>, std::vector<Json>> tracks;
  for (const Json& event : events)
    if (event.at("ph") == "X") tracks[{event.at("pid"), event.at("tid")}].push_back(event);
  for (auto& [track, spans] : tracks) {
    std::stable_sort(spans.begin(), spans.end(), [](const Json& a, const Json& b) {
      return Begin(a) != Begin(b) ? Begin(a) < Begin(b) : End(a) > End(b);
    });
    std::vector<double> open;
    for (const Json& span : spans) {
      while (!open.empty() && open.back() <= Begin(span) + kRounding) open.pop_back();
      if (!open.empty()) {
        ASSERT_LE(End(span), open.back() + kRounding) << span;
      }
      open.push_back(End(span));
    }
  }
}

std::set<int> Ranks(const std::vector<Json>& spans) {
  std::set<int> ranks;
  for (const Json& span : spans) ranks.insert(span.at("pid").get<int>());
  return ranks;
}

// Nobody gets past a wait before all have come to it.
void ExpectOneClock(const Json& events, double error) {
  std::map<int, std::vector<Json>> waits;
  for (const Json& span : Spans(events, "wait")) waits[span.at("pid")].push_back(span);
  for (std::size_t i = 0; i < waits[0].size(); ++i) {
    double last_come = 0, first_gone = 1e300;
    for (const auto& [rank, spans] : waits) {
      ASSERT_EQ(spans.size(), waits[0].size());
      last_come = std::max(last_come, Begin(spans[i]));
      first_gone = std::min(first_gone, End(spans[i]));
    }
    ASSERT_GE(first_gone, last_come - error) << "wait " << i;
  }
}

TEST_F(TrainTraceTest, OfThreadsShowsEveryPartOfEveryStepOfAllRanks) {
  const Finished finished = Run({"train", "sea.csv", "--workers", "3", "--batch", "30", "--quiet", "--trace", "t.json",
                                 "--holdout", "0.1", "--checkpoint", "run.ckpt"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const Json events = Events("t.json");
  ExpectNested(events);
  ExpectOneClock(events, 0.002);
  for (const char* name : {"read", "compute", "wait", "exchange", "apply", "evaluate", "checkpoint", "step"})
    EXPECT_EQ(Ranks(Spans(events, name)), (std::set<int>{0, 1, 2})) << name;
  const auto steps = Spans(events, "step");
  EXPECT_EQ(steps.size(), Spans(events, "compute").size());
  for (const Json& step : steps) EXPECT_TRUE(step.at("args").contains("step"));
}

TEST_F(TrainTraceTest, OfProcessesIsOnOneClockWithTheFabricsThread) {
  const Finished finished = Run({"launch", "-n", "3", "--", "train", "sea.csv", "--model", "mlp", "--epochs", "1",
                                 "--batch", "60", "--bucket", "64", "--quiet", "--trace", "t.json"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const Json events = Events("t.json");
  ExpectNested(events);
  std::set<std::string> names;
  double error = 0;
  for (const Json& event : events) {
    if (event.at("name") == "process_name") names.insert(event.at("args").at("name"));
    if (event.at("name") != "process_labels") continue;
    // On one machine all clocks are the same: what was measured is all error.
    double ahead = 0, stated = 0;
    const std::string label = event.at("args").at("labels");
    ASSERT_EQ(std::sscanf(label.c_str(), "clock ahead of rank 0's by %lf us, ±%lf us", &ahead, &stated), 2) << label;
    EXPECT_LE(std::abs(ahead), stated + 0.001);
    error = std::max(error, stated);
  }
  EXPECT_EQ(names.size(), 3u);
  ExpectOneClock(events, 2 * error + 0.002);
  std::vector<Json> beside;
  for (const Json& span : Spans(events, "exchange bucket"))
    if (span.at("tid") == 1) beside.push_back(span);
  EXPECT_EQ(Ranks(beside), (std::set<int>{0, 1, 2}));
  for (const Json& span : beside) {
    EXPECT_GT(span.at("args").at("bytes").get<int>(), 0);
    EXPECT_EQ(span.at("args").at("algorithm"), "halving");
  }
}

TEST_F(TrainTraceTest, OfOneWorkerAlone) {
  for (const Arguments& how : std::vector<Arguments>{{}, {"--batch", "20"}, {"--optimizer", "lbfgs"}}) {
    Arguments arguments = {"train", "sea.csv", "--quiet", "--trace", "t.json"};
    arguments.insert(arguments.end(), how.begin(), how.end());
    const Finished finished = Run(arguments);
    ASSERT_EQ(finished.code, 0) << finished.err;
    const Json events = Events("t.json");
    ExpectNested(events);
    EXPECT_FALSE(Spans(events, "step").empty());
    EXPECT_FALSE(Spans(events, "compute").empty());
    EXPECT_NE(finished.out.find("trace        t.json"), std::string::npos) << finished.out;
  }
}

TEST_F(TrainTraceTest, AFileThatCannotBeWrittenIsRefusedBeforeTraining) {
  const Finished finished =
      Run({"train", "sea.csv", "--quiet", "--trace", "no/such/t.json", "--checkpoint", "run.ckpt"});
  EXPECT_EQ(finished.code, 1) << finished.err;
  EXPECT_NE(finished.err.find("--trace no/such/t.json"), std::string::npos) << finished.err;
  EXPECT_NE(access((scratch_ / "run.ckpt").c_str(), F_OK), 0);
}

TEST_F(TrainTraceTest, ARunThatWasStoppedLeavesWhatItDidOnAllRanks) {
  Process process(scratch_,
                  {"launch", "-n", "2", "--", "train", "sea.csv", "--batch", "20", "--epochs", "100000", "--quiet",
                   "--trace", "t.json", "--checkpoint", "run.ckpt", "--checkpoint-seconds", "0.05"},
                  {});
  ASSERT_TRUE(process.WaitUntil([&] { return access((scratch_ / "run.ckpt").c_str(), F_OK) == 0; }));
  kill(process.pid(), SIGINT);
  EXPECT_EQ(process.Wait().code, 130);
  const Json events = Events("t.json");
  ExpectNested(events);
  EXPECT_EQ(Ranks(Spans(events, "checkpoint")), (std::set<int>{0, 1}));
}

}  // namespace
}  // namespace freshet::cli
