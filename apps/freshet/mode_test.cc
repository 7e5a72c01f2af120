// The synchrony of a running job is changed from outside, by who has its token; with and without members that may be lost.

#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "launch_testing.h"
#include "process_testing.h"

namespace freshet::cli {
namespace {

using Json = nlohmann::json;

class ModeTest : public testing::Test {
 protected:
  using Arguments = std::vector<std::string>;
  static constexpr int kRows = 12'000, kEpochs = 40;

  ModeTest() {
    EXPECT_EQ(Run({"data", "generate", "--kind", "sea", "--rows", Str(kRows), "-o", "sea.csv"}).code, 0);
    for (const char* const name : {"token", "other"}) {
      std::ofstream(scratch_ / name) << std::string(32, name[0]);
      EXPECT_EQ(chmod((scratch_ / name).c_str(), 0600), 0);
    }
  }
  Finished Run(const Arguments& arguments) { return Process(scratch_, arguments, {}).Wait(); }
  Finished Ask(Arguments arguments, const std::string& token = "token") {
    arguments.insert(arguments.end(), {"--job", "nightly", "--token-file", token, "--json"});
    return Run(arguments);
  }
  // Where it says it is reached; "" when it says nothing.
  static std::string AddressOf(Process& launch) {
    const std::string before = " at 127.0.0.1:";
    if (!launch.WaitUntil([&] { return launch.said().find(", job nightly") != std::string::npos; })) return "";
    const std::string said = launch.said();
    const std::size_t from = said.find(before) + 4;
    return said.substr(from, said.find(',', from) - from);
  }

  base::ScratchDirectory scratch_;
};

TEST_F(ModeTest, OfARunningJobIsChangedWithoutAStop) {
  for (const bool elastic : {false, true}) {
    SCOPED_TRACE(elastic ? "members come and go" : "members stay");
    Arguments launched = {"launch", "-n", "3", "--job", "nightly", "--token-file", "token"};
    if (elastic) launched.insert(launched.end(), {"--elastic", "2:3"});
    for (const char* const word : {"--", "train", "sea.csv", "--batch", "16", "--strategy", "server", "--synchrony",
                                   "bsp", "--json", "--threads", "1", "-o", "s.model", "--epochs"})
      launched.emplace_back(word);
    launched.push_back(Str(kEpochs));
    Process launch(scratch_, launched, {});
    const std::string address = AddressOf(launch);
    ASSERT_FALSE(address.empty()) << launch.said();
    ASSERT_TRUE(launch.WaitUntil([&] {  // it has begun
      const Finished ps = Ask({"ps", address});
      return ps.code == 0 && Json::parse(ps.out)["workers"][0].value("clock", 0) > 0;
    }));

    const Finished changed = Ask({"mode", "ssp:3", address});
    ASSERT_EQ(changed.code, 0) << changed.err;
    const Json told = Json::parse(changed.out);
    EXPECT_EQ(told["before"], "bsp");
    EXPECT_EQ(told["now"], "ssp:3");
    EXPECT_GT(told["since"], 0);

    const Finished ps = Ask({"ps", address});
    ASSERT_EQ(ps.code, 0) << ps.err;
    const Json shown = Json::parse(ps.out);
    EXPECT_EQ(shown["workers"].size(), 3u);
    for (const Json& worker : shown["workers"]) {
      EXPECT_EQ(worker["synchrony"]["now"], "ssp:3");
      EXPECT_GT(worker["updates_served"], 0);
    }

    EXPECT_EQ(Ask({"mode", "bap", address}, "other").code, 1);  // a stranger: nobody answers
    const Finished refused = Ask({"mode", "tap", address});
    EXPECT_EQ(refused.code, 2);
    EXPECT_NE(refused.err.find("expected bsp"), std::string::npos) << refused.err;
    EXPECT_EQ(Ask({"mode", "bap", address}).code, 0);
    const Finished again = Ask({"mode", "bap", address});
    EXPECT_EQ(again.code, 0);
    EXPECT_EQ(Json::parse(again.out)["before"], "bap");

    const Finished finished = launch.Wait();
    ASSERT_EQ(finished.code, 0) << finished.err;
    EXPECT_EQ(Json::parse(finished.out).at("rows"), kRows * kEpochs) << "each row once in every epoch";
  }
}

TEST_F(ModeTest, SaysWhatItWants) {
  EXPECT_NE(Run({"mode", "ssp:3"}).err.find("expected two"), std::string::npos);
  EXPECT_NE(Run({"mode", "ssp:3", "127.0.0.1:1"}).err.find("which job?"), std::string::npos);
}

}  // namespace
}  // namespace freshet::cli
