// What a person sees of ways of training together, side by side, and of parameter servers among processes.

#include <nlohmann/json.hpp>

#include "process_testing.h"

namespace freshet::cli {
namespace {

using Json = nlohmann::json;

class CompareTest : public testing::Test {
 protected:
  CompareTest() { EXPECT_EQ(Run({"data", "generate", "--kind", "sea", "--rows", "6000", "-o", "sea.csv"}).code, 0); }
  Finished Run(const std::vector<std::string>& arguments) { return Process(scratch_, arguments, {}).Wait(); }
  Json RunJson(const std::vector<std::string>& arguments) {
    const Finished finished = Run(arguments);
    EXPECT_EQ(finished.code, 0) << finished.err;
    return Json::parse(finished.out, nullptr, false);
  }

  base::ScratchDirectory scratch_;
};

TEST_F(CompareTest, InSimulatedTimeWhoWaitsForNobodyIsFasterBesideStragglers) {
  const std::vector<std::string> arguments = {
      "compare",  "sea.csv", "--strategies", "bsp,ssp:3,bap,allreduce:ring,average:8,gossip:push-sum",
      "--epochs", "2",       "--platform",   "laptop-cluster",
      "--row-us", "20",      "--straggler",  "4x/10",
      "--svg",    "w.svg",   "--json",       "--quiet"};
  const Finished finished = Run(arguments);
  ASSERT_EQ(finished.code, 0) << finished.err;
  const Json json = Json::parse(finished.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << finished.out;
  ASSERT_EQ(json["courses"].size(), 6u);
  for (const Json& course : json["courses"]) {
    EXPECT_EQ(course["rows"], 12000) << course["strategy"];
    EXPECT_NEAR(course["loss"].get<double>(), json["courses"][0]["loss"].get<double>(), 0.03) << course["strategy"];
    for (const char* const curve : {"seconds", "epochs", "bytes"}) {
      ASSERT_GT(course["curves"][curve].size(), 20u);
      for (std::size_t i = 1; i < course["curves"][curve].size(); ++i)
        EXPECT_LE(course["curves"][curve][i - 1][0], course["curves"][curve][i][0]);
    }
  }
  const auto seconds = [&](std::size_t i) { return json["courses"][i]["seconds"].get<double>(); };
  EXPECT_LT(seconds(1), 0.85 * seconds(0));
  EXPECT_LT(seconds(2), 0.85 * seconds(0));
  for (const char* const name : {"w.svg", "w-epochs.svg", "w-bytes.svg"})
    EXPECT_NE(scratch_.Read(name).find("<svg"), std::string::npos) << name;
  EXPECT_EQ(Run(arguments).out, finished.out);
}

// Who reads ahead computes while what it has asked for is on its way.
TEST_F(CompareTest, FarFromEachOtherApproximateWorkersReachTheLossOfBulkInAFifthOfItsTime) {
  scratch_.Write("far.toml", "nodes = 4\nlink-us = 15000\n");
  const Json json = RunJson({"compare", "sea.csv", "--strategies", "bsp,asp:0.01,bap", "--epochs", "2", "--platform",
                             "far.toml", "--row-us", "20", "--holdout", "0.1", "--json", "--quiet"});
  ASSERT_EQ(json["courses"].size(), 3u);
  const auto& [bulk, approximate] = std::pair(json["courses"][0], json["courses"][1]);
  ASSERT_TRUE(approximate.contains("seconds_to_goal"));
  EXPECT_LT(approximate["seconds_to_goal"].get<double>(), 0.2 * bulk["seconds_to_goal"].get<double>());
  EXPECT_LT(approximate["seconds"].get<double>(), 0.2 * bulk["seconds"].get<double>());
  EXPECT_LT(approximate["loss"].get<double>(), 1.01 * bulk["loss"].get<double>());
  EXPECT_EQ(approximate["rows"], bulk["rows"]);
  EXPECT_GT(json["courses"][2]["seconds"].get<double>(), 0.9 * bulk["seconds"].get<double>());
}

TEST_F(CompareTest, OnThreadsASlowWorkerIsWaitedForInBulkOnly) {
  const Json json = RunJson({"compare", "sea.csv", "--strategies", "bsp,bap", "--workers", "2", "--batch", "32",
                             "--row-us", "300", "--straggler", "3x@1", "--json", "--quiet"});
  ASSERT_EQ(json["courses"].size(), 2u);
  EXPECT_EQ(json["courses"][1]["rows"], 6000);
  // The first worker's last step: in bulk it waited for the other with each, 188 times 16 rows of 600 us more.
  EXPECT_GT(json["courses"][0]["seconds"].get<double>(), 1.5);
  EXPECT_LT(json["courses"][1]["seconds"].get<double>(), 0.7 * json["courses"][0]["seconds"].get<double>());
}

TEST_F(CompareTest, RefusesWhatItDoesNotKnow) {
  const auto refuses = [&](std::vector<std::string> arguments, const std::string& why) {
    arguments.insert(arguments.begin(), {"compare", "sea.csv"});
    const Finished finished = Run(arguments);
    EXPECT_EQ(finished.code, 2);
    EXPECT_NE(finished.err.find(why), std::string::npos) << finished.err;
  };
  refuses({"--strategies", "bsp,magic"}, "found 'magic'");
  refuses({"--strategies", "average:x"}, "average:N");
  refuses({"--straggler", "slow"}, "--straggler");
  refuses({"--straggler", "2x@"}, "2x@1");
  refuses({"--workers", "1"}, "give 2 or more");
  refuses({"--checkpoint", "a"}, "leave them out");
  refuses({"--platform", "moon"}, "moon");
}

TEST_F(CompareTest, ProcessesLearnByServersOfTheirOwnAndByEachOther) {
  for (const std::string synchrony : {"bsp", "ssp:2", "asp:0.01", "bap"})
    for (const std::string servers : {"0", "1"}) {
      SCOPED_TRACE(synchrony + " " + servers);
      const Json json = RunJson({"launch", "-n", "3", "--", "train", "sea.csv", "--strategy", "server", "--synchrony",
                                 synchrony, "--servers", servers, "--holdout", "0.1", "--epochs", "2", "--json"});
      ASSERT_TRUE(json.is_object());
      EXPECT_NEAR(json["rows"].get<double>(), 2 * 0.9 * 6000, 200);
      EXPECT_LT(json["held_out"]["log_loss"].get<double>(), 0.5);
      ASSERT_EQ(json["workers"].size(), 3u);
      if (servers == "1") EXPECT_EQ(json["workers"][2]["rows"], 0);
      std::uint64_t held = 0;
      for (const Json& worker : json["workers"]) {
        EXPECT_EQ(worker.contains("server"), servers == "0" || worker["rank"] == 2);
        if (worker.contains("server")) held += worker["server"]["blocks"][0]["rows_held"].get<std::uint64_t>();
        if (synchrony == "bap") EXPECT_FALSE(worker.contains("waited_for"));
      }
      EXPECT_EQ(held, 1u);  // of three weights
    }
}

}  // namespace
}  // namespace freshet::cli
