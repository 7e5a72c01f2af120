// What a person sees of a network without training one.

#include <nlohmann/json.hpp>

#include "process_testing.h"

namespace freshet::cli {
namespace {

using Json = nlohmann::json;

class InspectNetworkTest : public testing::Test {
 protected:
  Finished Inspect(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "inspect");
    return Process(scratch_, arguments, {}).Wait();
  }
  std::string Shows(const std::vector<std::string>& arguments) {
    const Finished finished = Inspect(arguments);
    EXPECT_EQ(finished.code, 0) << finished.err;
    return finished.out;
  }
  std::string Refuses(const std::vector<std::string>& arguments) {
    const Finished finished = Inspect(arguments);
    EXPECT_EQ(finished.code, 2) << finished.out;
    return finished.err;
  }
  static void ExpectMentions(const std::string& text, const std::string& piece) {
    EXPECT_NE(text.find(piece), std::string::npos) << "'" << piece << "' is not in: " << text;
  }

  base::ScratchDirectory scratch_;
};

TEST_F(InspectNetworkTest, ShowsLayersAndTotalsOfANetworkOfTheZoo) {
  const std::string out = Shows({"--network", "lenet5"});
  for (const char* piece : {"convolution 20, 5 × 5", "20 × 24 × 24", "400,500", "dense 10, head", "431,080",
                            "GFLOP forward a row", "state of momentum"})
    ExpectMentions(out, piece);
  ExpectMentions(Shows({"--network", "resnet20"}), "274,042, 1,568 of them running statistics");
}

TEST_F(InspectNetworkTest, JsonHasTheSameNumbers) {
  const Json json =
      Json::parse(Shows({"--network", "lenet5", "--json", "--batch", "8", "--optimizer", "adam"}), nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["parameters"], 431'080);
  EXPECT_EQ(json["layers"][1]["name"], "conv1");
  EXPECT_EQ(json["layers"][1]["output"], Json({20, 24, 24}));
  EXPECT_EQ(json["layers"][1]["flops"], 2 * 25 * 20 * 24 * 24);
  EXPECT_EQ(json["layers"][1]["output_bytes"], 8 * 4 * 20 * 24 * 24);
  EXPECT_EQ(json["bytes"]["weights"], 4 * 431'080);
  EXPECT_EQ(json["bytes"]["optimizer_state"], 2 * 4 * 431'080);
  EXPECT_GT(json["bytes"]["arena"], 8 * 4 * 20 * 24 * 24);
  EXPECT_GT(json["flops_step_row"], json["flops_forward_row"].get<double>() * 2);
  EXPECT_LT(json["flops_step_row"], json["flops_forward_row"].get<double>() * 3);
}

TEST_F(InspectNetworkTest, ShowsWhoWouldHoldAndSendWhatOnARing) {
  const std::string out = Shows({"--network", "lenet5", "--ring", "2", "--batch", "64"});
  for (const char* piece : {"to the one before", "conv1 … ", "8 micro-batches a step: idle 11.1 %"})
    ExpectMentions(out, piece);
  ExpectMentions(Shows({"--network", "lenet5", "--ring", "2", "--batch", "64", "--pipeline", "stash"}),
                 "8 micro-batches a step: idle where it begins and runs empty only");
  const Json json = Json::parse(
      Shows({"--network", "lenet5", "--ring", "3", "--batch", "64", "--pipeline", "flush", "--micro", "4", "--json"}),
      nullptr, false);
  ASSERT_TRUE(json.is_object());
  const Json& members = json["ring"]["members"];
  ASSERT_EQ(members.size(), 3u);
  std::uint64_t parameters = 0;
  double cost = 0;
  for (std::size_t m = 0; m < 3; ++m) {
    parameters += members[m]["parameters"].get<std::uint64_t>();
    cost += members[m]["cost_share"].get<double>();
    EXPECT_EQ(members[m]["bytes_next"], m < 2 ? members[m + 1]["bytes_back"] : Json(0));
  }
  EXPECT_EQ(parameters, json["parameters"]);
  EXPECT_NEAR(cost, 1, 1e-9);
  ExpectMentions(Refuses({"--network", "mlp", "--ring", "8"}), "cannot be cut into 8 stages");
  ExpectMentions(Refuses({"--network", "lenet5", "--ring", "2", "--stages", "2"}), "--stages 2 is for --pipeline");
}

TEST_F(InspectNetworkTest, TextOfTheZooIsABeginningOfOnesOwn) {
  scratch_.Write("mine.toml", Shows({"--network", "lenet5", "--toml"}));
  EXPECT_EQ(Shows({"--network", "mine.toml"}), Shows({"--network", "lenet5"}));
}

TEST_F(InspectNetworkTest, GivesTheTextWhatItLeavesToTheData) {
  scratch_.Write("any.toml", "input = \"data\"\nlayers = [{dense = \"classes\"}]\n");
  const Json json =
      Json::parse(Shows({"--network", "any.toml", "--input", "3x4", "--classes", "5", "--json"}), nullptr, false);
  EXPECT_EQ(json["parameters"], 12 * 5 + 5);
  ExpectMentions(Refuses({"--network", "any.toml"}), "line 1");
  ExpectMentions(Refuses({"--network", "any.toml"}), "--input");
}

TEST_F(InspectNetworkTest, DrawsPictures) {
  Shows({"--network", "resnet20", "--draw", "net.svg"});
  EXPECT_TRUE(scratch_.Read("net.svg").starts_with("<svg"));
  Shows({"--network", "resnet20", "--draw", "net.dot"});
  EXPECT_TRUE(scratch_.Read("net.dot").starts_with("digraph"));
  ExpectMentions(Refuses({"--network", "resnet20", "--draw", "net.png"}), ".svg or .dot");
}

TEST_F(InspectNetworkTest, WarnsOfWhatWasProbablyNotMeant) {
  scratch_.Write("mine.toml", "input = [4]\nlayers = [\n{dense = 2},\n{softmax = true}]\n");
  const Finished finished = Inspect({"--network", "mine.toml"});
  EXPECT_EQ(finished.code, 0) << finished.err;
  ExpectMentions(finished.err, "line 4, layer 'softmax2' (softmax): the softmax loss applies softmax itself");
  scratch_.Write("rows.csv", "1,2,3,4,a\n4,3,2,1,b\n");
  const Finished trained =
      Process(scratch_, {"train", "rows.csv", "--model", "mine.toml", "--loss", "softmax", "--quiet"}, {}).Wait();
  EXPECT_EQ(trained.code, 0) << trained.err;
  ExpectMentions(trained.err, "line 4, layer 'softmax2' (softmax)");
}

TEST_F(InspectNetworkTest, RefusalsSayWhatToDo) {
  scratch_.Write("mine.toml", "input = [4]\nlayers = [{dense = 2}]\n");
  ExpectMentions(Refuses({"--network", "alexnett"}), "did you mean alexnet?");
  ExpectMentions(Refuses({"--network", "alexnet", "--input", "3x"}), "like 3x227x227");
  ExpectMentions(Refuses({"--network", "alexnet", "--input", "3x32x32"}), "3 x 227 x 227");
  ExpectMentions(Refuses({"--network", "mine.toml", "--input", "5"}), "input = \"data\"");
  ExpectMentions(Refuses({"--network", "mine.toml", "--optimizer", "sdg"}), "sgd");
  ExpectMentions(Refuses({"--network", "mine.toml", "other.model"}), "not both");
}

}  // namespace
}  // namespace freshet::cli
