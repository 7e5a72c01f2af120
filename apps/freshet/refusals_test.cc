// What the command line refuses, and how it ends when it is told to.

#include <csignal>

#include "process_testing.h"

namespace freshet::cli {
namespace {

class RefusalsTest : public testing::Test {
 protected:
  RefusalsTest() {
    std::string rows;
    for (int row = 0; row < 400; ++row) rows += Str(row % 2, " ", row % 7 + 1, ":1 9:", row % 5, "\n");
    scratch_.Write("rows.svm", rows);
  }
  Finished Run(const std::vector<std::string>& arguments) { return Process(scratch_, arguments, {}).Wait(); }
  void Refused(const std::vector<std::string>& arguments, const std::string& says, int code = 2) {
    const Finished finished = Run(arguments);
    EXPECT_EQ(finished.code, code) << Join(arguments, " ") << "\n" << finished.err;
    EXPECT_NE(finished.err.find(says), std::string::npos) << Join(arguments, " ") << "\n" << finished.err;
  }

  base::ScratchDirectory scratch_;
};

TEST_F(RefusalsTest, OptionsThatWouldDoNothing) {
  const std::vector<std::string> train = {"train", "rows.svm", "--batch", "64", "--workers", "4"};
  const auto with = [&](std::vector<std::string> before, const std::vector<std::string>& more) {
    before.insert(before.end(), more.begin(), more.end());
    return before;
  };
  Refused(with(train, {"--synchrony", "ssp:3"}),
          "--synchrony goes with --strategy server or groups, not with allreduce; it would do nothing: leave it out");
  Refused(with(train, {"--every", "8"}), "--every goes with --strategy average, groups or gossip, not with allreduce");
  Refused(with(train, {"--strategy", "auto", "--micro", "8"}), "--micro goes with --strategy ring or modules");
  Refused(with(train, {"--strategy", "server", "--slower-when-stale"}),
          "--slower-when-stale goes with --synchrony ssp:S, asp:V or bap");
  EXPECT_EQ(Run({"train", "rows.svm", "--workers", "2", "--every", "8", "--quiet"}).code, 0) << "these average";
  Refused({"compare", "rows.svm", "--strategies", "allreduce,bsp", "--gossip", "walk"}, "--gossip goes with");
  Refused({"compare", "rows.svm", "--strategies", "allreduce", "--synchrony", "bap"}, "--strategies says it of each");
  EXPECT_EQ(
      Run({"compare", "rows.svm", "--workers", "2", "--strategies", "allreduce,ssp:2", "--fetch-every", "2", "--quiet"})
          .code,
      0);
  const std::vector<std::string> simulate = {"simulate", "--platform", "laptop-cluster", "--nodes",
                                             "2",        "--model",    "lenet5"};
  Refused(with(simulate, {"--synchrony", "bap"}), "--synchrony goes with --strategy server or groups");
  Refused(with(simulate, {"--servers", "2"}), "--servers goes with --strategy server, not with allreduce");
  Refused({"plan", "--platform", "laptop-cluster", "--model", "lenet5", "--every", "8"}, "--every goes with");
}

TEST_F(RefusalsTest, MoreThatAreNotWaitedForThanThereAre) {
  Refused({"train", "rows.svm", "--batch", "64", "--workers", "4", "--backup", "4"},
          "--backup 4 of 4 workers that make updates leaves none; give at most 3");
  Refused({"compare", "rows.svm", "--strategies", "bsp,bsp+4", "--workers", "4"},
          "--strategies bsp+4: of 4 workers at most 3 need not be waited for");
  Refused({"compare", "rows.svm", "--strategies", "bsp", "--workers", "4", "--straggler", "2x@4"},
          "--straggler 2x@4: of 4 workers the last is rank 3");
}

TEST_F(RefusalsTest, AnEmptySynchrony) {
  for (const std::vector<std::string>& given : {std::vector<std::string>{"--synchrony", ""}, {"--synchrony="}}) {
    std::vector<std::string> arguments = {"train", "rows.svm", "--workers", "2", "--strategy", "server"};
    arguments.insert(arguments.end(), given.begin(), given.end());
    Refused(arguments, "--synchrony: found an empty text");
  }
  Refused({"mode", "", "127.0.0.1:9", "--job", "x"}, "found an empty mode, expected bsp");
}

TEST_F(RefusalsTest, LimitsAreWrittenAsTheyAre) {
  Refused({"train", "rows.svm", "--strategy", "server", "--replicas", "0"},
          "--replicas: found '0', expected a whole number from 1 to 64");
  scratch_.Write("nodes.toml", "[job]\nnodes = 0\n[train]\ndata = [\"rows.svm\"]\n");
  Refused({"submit", "nodes.toml", "--dry-run"}, "found '0', expected a whole number from 1 to 100000");
}

TEST_F(RefusalsTest, ATextThatIsNotWhatItShouldBeIsNamed) {
  scratch_.Write("list.json", "[1]");
  Refused({"plan", "--calibration", "list.json"},
          "list.json: is no calibration; freshet bench --calibrate list.json writes one\n", 6);
}

TEST_F(RefusalsTest, ANetworkThatIsNoneIsNamed) {
  scratch_.Write("net.toml", "layers = [{dance = 3}]\n");
  Refused({"train", "rows.svm", "--features", "20", "--model", "net.toml"}, "reading net.toml");
}

TEST_F(RefusalsTest, APlaceThatTakesNoFilesForALargeModel) {
  Refused({"train", "rows.svm", "--model", "fm", "--batch", "64", "--workers", "2", "--strategy", "server",
           "--large-model", "--scratch", "/proc"},
          "--scratch: /proc takes no files; name a directory on a disk with room for the model", 1);
}

TEST_F(RefusalsTest, AnotherNumberOfWorkersForKmeans) {
  const auto train = [&](const char* workers) {
    return std::vector<std::string>{"train",      "rows.svm", "--features",   "20",    "--model", "kmeans",
                                    "--strategy", "ring",     "--workers",    workers, "--batch", "64",
                                    "--epochs",   "2",        "--checkpoint", "c.ck",  "--quiet"};
  };
  EXPECT_EQ(Run(train("2")).code, 0);
  Refused(train("3"), "written by 2 workers, now 3: another number cannot go on with kmeans", 6);
}

TEST_F(RefusalsTest, ALockIsGoneWithWhoHeldItAlsoAfterAFailure) {
  scratch_.Write("empty.svm", "");
  EXPECT_NE(Run({"train", "empty.svm", "-o", "m.model"}).code, 0);
  EXPECT_NE(Run({"train", "rows.svm", "-o", "m.model", "--model", "factorization"}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "m.model.lock"));
  EXPECT_EQ(Run({"train", "rows.svm", "-o", "m.model", "--quiet"}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "m.model.lock"));
}

TEST_F(RefusalsTest, ASimulationEndsWhenItIsTold) {
  scratch_.Write("star.toml", "nodes = 512\ncores = 4\n");
  const std::vector<std::string> simulate = {"simulate", "--platform",       "star.toml", "--nodes",
                                             "512",      "--steps",          "1000",      "--model",
                                             "alexnet",  "--batch-per-node", "8",         "--json"};
  const std::vector<std::string> plan = {"plan", "--platform", "star.toml", "--nodes", "256",     "--steps",
                                         "1000", "--batch",    "4096",      "--model", "alexnet", "--json"};
  for (const auto& arguments : {simulate, plan})
    for (const int signal : {SIGINT, SIGTERM}) {
      Process process(scratch_, arguments, {});
      usleep(700'000);
      ASSERT_TRUE(process.Running()) << process.said();
      kill(process.pid(), signal);
      for (int tries = 0; tries < 100 && process.Running(); ++tries) usleep(20'000);
      ASSERT_FALSE(process.Running()) << arguments[0] << " goes on";
      const Finished finished = process.Wait();
      EXPECT_EQ(finished.code, 128 + signal);
      EXPECT_EQ(finished.ErrorLines(), std::vector<std::string>{"stopped"}) << finished.err;
      EXPECT_NE(finished.out.find(Str("\"exit_code\":", 128 + signal)), std::string::npos) << finished.out;
    }
}

}  // namespace
}  // namespace freshet::cli
