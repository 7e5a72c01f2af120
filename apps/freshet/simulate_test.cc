// What a person sees of training on a cluster that is only described.

#include <nlohmann/json.hpp>

#include "process_testing.h"

namespace freshet::cli {
namespace {

using Json = nlohmann::json;

class SimulateTest : public testing::Test {
 protected:
  Finished Simulate(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "simulate");
    return Process(scratch_, arguments, {}).Wait();
  }
  std::string Refuses(const std::vector<std::string>& arguments) {
    const Finished finished = Simulate(arguments);
    EXPECT_EQ(finished.code, 2) << finished.out;
    EXPECT_EQ(finished.ErrorLines().size(), 1u) << finished.err;
    return finished.err;
  }

  base::ScratchDirectory scratch_;
};

TEST_F(SimulateTest, ShowsHowItScalesAndDrawsIt) {
  const Finished finished = Simulate({"--platform", "laptop-cluster", "--nodes", "1..8", "--model", "lenet5", "--svg",
                                      "curve.svg", "--trace", "trace.json", "--trace-ranks", "3"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  for (const char* piece : {"lenet5 (1.7 MB of parameters) on laptop-cluster", "speed-up", "bound by", "busiest links"})
    EXPECT_NE(finished.out.find(piece), std::string::npos) << finished.out;
  EXPECT_NE(scratch_.Read("curve.svg").find("<svg"), std::string::npos);
  const Json trace = Json::parse(scratch_.Read("trace.json"), nullptr, false);
  ASSERT_TRUE(trace.is_object());
  std::set<int> ranks;
  for (const Json& event : trace["traceEvents"]) ranks.insert(event["pid"].get<int>());
  EXPECT_EQ(ranks, (std::set<int>{0, 1, 2}));
}

TEST_F(SimulateTest, JsonHasTheSameNumbersEachTime) {
  const std::vector<std::string> arguments = {
      "--platform", "laptop-cluster",   "--nodes", "2,4", "--model", "lenet5",
      "--strategy", "average",          "--every", "3",   "--json",  "--topology",
      "central",    "--batch-per-node", "32"};
  const Finished finished = Simulate(arguments);
  ASSERT_EQ(finished.code, 0) << finished.err;
  const Json json = Json::parse(finished.out, nullptr, false);
  ASSERT_TRUE(json.is_object());
  ASSERT_EQ(json["rows"].size(), 2u);
  EXPECT_EQ(json["rows"][0]["nodes"], 2);
  EXPECT_EQ(json["rows"][1]["batch"], 128);
  EXPECT_GT(json["rows"][1]["update_seconds"], 0);
  EXPECT_EQ(json["rows"][0]["speed_up"], 2);
  EXPECT_EQ(Simulate(arguments).out, finished.out);
}

TEST_F(SimulateTest, SweepsServersAndNamesTheKnee) {
  scratch_.Write("star.toml", "nodes = 40\ncores = 4\n");
  const std::vector<std::string> arguments = {"--platform",  "star.toml",  "--nodes",          "8",       "--servers",
                                              "1..32",       "--strategy", "server",           "--model", "lenet5",
                                              "--synchrony", "ssp:2",      "--batch-per-node", "16"};
  const Finished finished = Simulate(arguments);
  ASSERT_EQ(finished.code, 0) << finished.err;
  for (const char* piece : {"servers, ssp:2", "nodes  servers", "knee: ", "it is less than a tenth faster"})
    EXPECT_NE(finished.out.find(piece), std::string::npos) << finished.out;
  std::vector<std::string> as_json = arguments;
  as_json.emplace_back("--json");
  const Json json = Json::parse(Simulate(as_json).out, nullptr, false);
  ASSERT_TRUE(json.is_object());
  ASSERT_EQ(json["rows"].size(), 6u);
  EXPECT_EQ(json["rows"][5]["servers"], 32);
  EXPECT_GT(json["rows"][2]["rows_per_second"], 1.1 * json["rows"][0]["rows_per_second"].get<double>());
}

TEST_F(SimulateTest, OtherNetworksAreSimGridsOrItIsSaidHowToGetIt) {
  const Finished finished =
      Simulate({"--platform", "marenostrum3", "--nodes", "4", "--model", "lenet5", "--batch", "64"});
  if (!std::filesystem::exists(Binary() + "-sim")) {
    EXPECT_EQ(finished.code, 2);
    EXPECT_NE(finished.err.find("libsimgrid-dev"), std::string::npos) << finished.err;
    GTEST_SKIP() << "SKIP SKIP SKIP SimGrid was not found: a fat tree was not simulated";
  }
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_NE(finished.out.find("on marenostrum3"), std::string::npos) << finished.out;
}

TEST_F(SimulateTest, SaysHowToGetSimGridWhereItIsNot) {
  Surroundings around;
  around.program = scratch_ / "freshet";
  std::filesystem::copy_file(Binary(), around.program);
  const Finished finished =
      Process(scratch_, {"simulate", "--platform", "marenostrum3", "--model", "lenet5"}, around).Wait();
  EXPECT_EQ(finished.code, 2) << finished.err;
  EXPECT_NE(finished.err.find("libsimgrid-dev"), std::string::npos) << finished.err;
}

TEST_F(SimulateTest, APlatformMayBeAFileAndTheListIsOne) {
  const Finished list = Simulate({"--list"});
  ASSERT_EQ(list.code, 0);
  const std::size_t begin = list.out.find("# laptop-cluster.toml"), end = list.out.find("\n\n", begin);
  ASSERT_NE(begin, std::string::npos);
  scratch_.Write("mine.toml", list.out.substr(begin, end - begin + 1));
  const std::vector<std::string> rest = {"--nodes", "4", "--model", "lenet5", "--json"};
  std::vector<std::string> known = rest, mine = rest;
  known.insert(known.end(), {"--platform", "laptop-cluster"});
  mine.insert(mine.end(), {"--platform", "mine.toml"});
  Json a = Json::parse(Simulate(known).out, nullptr, false), b = Json::parse(Simulate(mine).out, nullptr, false);
  ASSERT_TRUE(a.is_object() && b.is_object());
  EXPECT_EQ(a["rows"], b["rows"]);
}

TEST_F(SimulateTest, ThisMachineIsOneThatWasMeasured) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer cannot see how the threads of libgomp wait for each other";
#endif
  const std::vector<std::string> calibrate = {"bench",  "--calibrate", "here.json", "--model", "lenet5,mlp:16",
                                              "--rows", "2,8",         "--seconds", "0.01"};
  const Finished measured = Process(scratch_, calibrate, {}).Wait();
  ASSERT_EQ(measured.code, 0) << measured.err;
  const Finished finished = Simulate({"--calibration", "here.json", "--nodes", "1", "--workers-per-node", "2",
                                      "--model", "lenet5", "--batch", "16", "--codec", "int8", "--json"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const Json json = Json::parse(finished.out, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["platform"], "here");
  EXPECT_GT(json["rows"][0]["compute"], 0);
  EXPECT_NE(Refuses({"--calibration", "here.json", "--model", "alexnet"})
                .find("model alexnet was not measured; measured were: lenet5, mlp of 16"),
            std::string::npos);
  scratch_.Write("not.json", "{}");
  EXPECT_EQ(Simulate({"--calibration", "not.json", "--model", "lenet5"}).code, 6);
}

TEST_F(SimulateTest, APlanIsRankedAndSaysWhatOthersLoseBy) {
  const std::vector<std::string> arguments = {"plan",     "--platform", "laptop-cluster", "--model", "lenet5",
                                              "--codecs", "none,int8",  "--nodes",        "4"};
  const Finished shown = Process(scratch_, arguments, {}).Wait();
  ASSERT_EQ(shown.code, 0) << shown.err;
  EXPECT_NE(shown.out.find("slower: "), std::string::npos) << shown.out;
  std::vector<std::string> as_json = arguments;
  as_json.emplace_back("--json");
  const Json json = Json::parse(Process(scratch_, as_json, {}).Wait().out, nullptr, false);
  ASSERT_TRUE(json.is_object());
  ASSERT_GT(json["plans"].size(), 10u);
  EXPECT_GE(json["plans"][0]["rows_per_second"], json["plans"][1]["rows_per_second"]);
  const std::pair<std::vector<std::string>, const char*> wrong[] = {
      {{"plan", "--platform", "laptop-cluster", "--nodes", "9"}, "--nodes 9: laptop-cluster has 8"},
      {{"plan", "--platform", "laptop-cluster", "--workers-per-node", "0"}, "expected numbers, like 1,2,4"},
      {{"plan", "--platform", "laptop-cluster", "--topologies", "auto"}, "expected those that have a shape"},
      {{"plan", "--platform", "laptop-cluster", "--codecs", "none,mp3"}, "found 'mp3'"},
  };
  for (const auto& [command, says] : wrong) {
    const Finished refused = Process(scratch_, command, {}).Wait();
    EXPECT_EQ(refused.code, 2);
    EXPECT_NE(refused.err.find(says), std::string::npos) << refused.err;
  }
}

TEST_F(SimulateTest, RefusalsAreOneLineThatSaysWhatToDo) {
  scratch_.Write("torus.toml", "nodes = 9\ntopology = \"torus\"\nshape = \"2x2\"\n");
  scratch_.Write("none.toml", "link-gbit = 0\n");
  const std::pair<std::vector<std::string>, const char*> wrong[] = {
      {{}, "--platform NAME is needed: ethernet-10g"},
      {{"--platform", "moon"}, "platform 'moon': expected ethernet-10g"},
      {{"--platform", "torus.toml"}, "has room for 4 nodes, nodes are 9"},
      {{"--platform", "none.toml"}, "link-gbit"},
      {{"--platform", "laptop-cluster", "--nodes", "9"}, "--nodes 9: laptop-cluster has 8"},
      {{"--platform", "laptop-cluster", "--nodes", "8..1"}, "--nodes '8..1': expected 16, or 1,8,64, or 1..64"},
      {{"--platform", "laptop-cluster", "--nodes", "-1"}, "expected"},
      {{"--platform", "laptop-cluster", "--model", "lenet6"}, "model 'lenet6': expected one of"},
      {{"--platform", "laptop-cluster", "--model", "lenet5", "--nodes", "8", "--batch", "4"}, "batch 4 of 8 workers"},
      {{"--platform", "laptop-cluster", "--model", "lenet5", "--workers-per-node", "2000000"},
       "at most 1000000 in all"},
      {{"--platform", "laptop-cluster", "--model", "lenet5", "--shared-disk", "--read"}, "has none"},
      {{"--platform", "laptop-cluster", "--model", "lenet5", "--strategy", "server", "--servers", "x", "--nodes", "2"},
       "--servers 'x': expected 16, or 1,8,64, or 1..64"},
      {{"--platform", "laptop-cluster", "--model", "lenet5", "--strategy", "server", "--servers", "4", "--nodes", "6"},
       "10 nodes of laptop-cluster: it has 8"},
      {{"--platform", "laptop-cluster", "--strategy", "server", "--servers", "1,2", "--nodes", "2,4"},
       "give one of either"},
      {{"--platform", "laptop-cluster", "--model", "url-like", "--input", "3x3"}, "expected how many features"},
  };
  for (const auto& [arguments, says] : wrong) {
    const std::string error = Refuses(arguments);
    EXPECT_NE(error.find(says), std::string::npos) << "'" << says << "' is not in: " << error;
  }
}

}  // namespace
}  // namespace freshet::cli
