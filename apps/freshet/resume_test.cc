// Stopping a run and going on, as users meet it.

#include <signal.h>
#include <sys/stat.h>

#include "process_testing.h"

namespace freshet::cli {
namespace {

class ResumeTest : public testing::Test {
 protected:
  using Arguments = std::vector<std::string>;

  void SetUp() override {
    ASSERT_EQ(Run({"data", "generate", "--kind", "sea", "--rows", "4000", "-o", "sea.csv"}).code, 0);
  }
  Finished Run(const Arguments& arguments) { return Process(scratch_, arguments, {}).Wait(); }
  // A run of a network whose only window is all rows, stopped in its midst.
  void Stop(Arguments more) {
    Arguments arguments = train_;
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto before = Checkpoint();
    Process process(scratch_, arguments, {});
    ASSERT_TRUE(process.WaitUntil([&] { return Checkpoint() != before; }));  // it has written one of its own
    kill(process.pid(), SIGTERM);
    const Finished finished = process.Wait();
    ASSERT_EQ(finished.code, 143) << finished.err;
    EXPECT_NE(finished.err.find("checkpoint written to run.ckpt"), std::string::npos) << finished.err;
  }
  bool Exists(const std::string& name) const { return access((scratch_ / name).c_str(), F_OK) == 0; }
  // Which file it is; each one is written anew. 0: none.
  ino_t Checkpoint() const {
    struct stat found {};
    return stat((scratch_ / "run.ckpt").c_str(), &found) == 0 ? found.st_ino : 0;
  }
  Finished GoOn(Arguments more) {
    Arguments arguments = train_;
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.insert(arguments.end(), {"--epochs", "100000"});
    return Run(arguments);
  }

  base::ScratchDirectory scratch_;
  const Arguments train_ = {"train", "sea.csv", "--model",      "mlp",      "--batch",
                            "24",    "--quiet", "--checkpoint", "run.ckpt", "--checkpoint-seconds",
                            "0.02"};
};

TEST_F(ResumeTest, AnotherNumberOfWorkersGoesOnAndOtherDataIsRefused) {
  const Arguments endless = {"--workers", "3", "--epochs", "100000"};
  Stop(endless);
  const auto refused = [&](const Arguments& more, const std::string& piece) {
    const Finished finished = GoOn(more);
    EXPECT_EQ(finished.code, 6) << finished.err;
    EXPECT_NE(finished.err.find(piece), std::string::npos) << finished.err;
  };
  refused({"--workers", "2", "--codec", "int8"}, "codec");
  Stop({"--workers", "2", "--epochs", "100000"});
  Stop({"--epochs", "100000"});
  const std::string rows = scratch_.Read("sea.csv");
  scratch_.Write("sea.csv", rows + rows.substr(rows.find('\n', rows.size() / 2) + 1));
  refused({}, "the data has changed");
  scratch_.Write("sea.csv", rows);  // written anew, with the same rows
  Stop(endless);
}

TEST_F(ResumeTest, WhoStopsListeningToProgressDoesNotEndTrainingAndWhoStopsTakingResultsDoes) {
  const auto code_of = [&](const std::string& command, const std::string& pipe) {
    Process(scratch_, {"-c", Str("{ ", Binary(), " ", command, "; echo $? > code; } ", pipe)}, {.program = "/bin/sh"})
        .Wait();
    return scratch_.Read("code");
  };
  EXPECT_EQ(code_of("train sea.csv --epochs 3000 --batch 8 -o m.model", "2>&1 >/dev/null | head -n 1 >/dev/null"),
            "0\n");
  EXPECT_EQ(code_of("predict -i m.model sea.csv sea.csv sea.csv sea.csv", "| head -n 1 >/dev/null"), "141\n");
}

// The kernels of recurrent layers keep numbers where the stack should be: a signal must not be put there.
TEST_F(ResumeTest, ANetworkOfTextStopsWithItsHeapWhole) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "abcdefgh \n"[(i % 10 * i % 10 + i / 7) % 10];
  scratch_.Write("text.txt", text);
  for (int round = 0; round < 3; ++round) {
    Process process(scratch_,
                    {"train", "text.txt", "--format", "text", "--model", "char-lstm", "--epochs", "1000", "--threads",
                     "1", "--quiet", "--checkpoint", Str("text", round), "--checkpoint-seconds", "0.05"},
                    {});
    ASSERT_TRUE(process.WaitUntil([&] { return Exists(Str("text", round)); }));
    kill(process.pid(), SIGTERM);
    const Finished finished = process.Wait();
    EXPECT_EQ(finished.code, 143) << finished.err;
  }
}

}  // namespace
}  // namespace freshet::cli
