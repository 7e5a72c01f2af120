// Several workers as their users meet them: in one process, in several, and when one of them is gone.

#include <sys/stat.h>

#include <memory>

#include "process_testing.h"

namespace freshet::cli {
namespace {

class WorkersTest : public testing::Test {
 protected:
  using Arguments = std::vector<std::string>;
  using Group = std::vector<std::unique_ptr<Process>>;

  Finished Run(const Arguments& arguments, const Surroundings& around = {}) {
    return Process(scratch_, arguments, around).Wait();
  }
  void Generate(const std::string& rows) {
    ASSERT_EQ(Run({"data", "generate", "--kind", "sea", "--rows", rows, "-o", "sea.csv"}).code, 0);
  }
  // N processes that are told their place by variables, as a launcher would.
  Group Start(int count, const Arguments& arguments) {
    return StartEach(std::vector<Arguments>(static_cast<std::size_t>(count), arguments));
  }
  // The same with a command for each.
  Group StartEach(const std::vector<Arguments>& commands) {
    const std::size_t count = commands.size();
    const std::string token = scratch_.Write("token", std::string(32, 'k')), port = Str(FreePort());
    chmod(token.c_str(), 0600);
    Group group;
    for (std::size_t rank = 0; rank < count; ++rank) {
      Surroundings around;
      around.environment = {{"FRESHET_RANK", Str(rank)},
                            {"FRESHET_WORLD", Str(count)},
                            {"FRESHET_LOCAL_RANK", Str(rank)},
                            {"FRESHET_LOCAL_WORLD", Str(count)},
                            {"FRESHET_RENDEZVOUS", Str("127.0.0.1:", port)},
                            {"FRESHET_JOB_ID", "test"},
                            {"FRESHET_TOKEN_FILE", token}};
      group.push_back(std::make_unique<Process>(scratch_, commands[rank], around));
    }
    return group;
  }
  std::vector<Finished> Wait(Group& group) {
    std::vector<Finished> all;
    for (auto& process : group) all.push_back(process->Wait());
    return all;
  }
  bool Exists(const std::string& name) const { return access((scratch_ / name).c_str(), F_OK) == 0; }

  base::ScratchDirectory scratch_;
};

TEST_F(WorkersTest, ThreadsAndProcessesGiveTheSameModelWhateverTheStrategy) {
  Generate("3000");
  for (const std::string kind : {"allreduce", "average", "groups"}) {
    SCOPED_TRACE(kind);
    const Arguments train = {"train",   "sea.csv", "--batch",    "24",      "--strategy", kind,
                             "--every", "3",       "--topology", "central", "--quiet"};
    Arguments threads = train, processes = train;
    threads.insert(threads.end(), {"--workers", "4", "-o", "threads.model"});
    processes.insert(processes.end(), {"-o", "processes.model"});
    const Finished in_one = Run(threads);
    ASSERT_EQ(in_one.code, 0) << in_one.err;
    Group group = Start(4, processes);
    const auto finished = Wait(group);
    for (const Finished& one : finished) ASSERT_EQ(one.code, 0) << one.err;
    EXPECT_FALSE(finished[0].out.empty());
    for (std::size_t rank = 1; rank < 4; ++rank) EXPECT_EQ(finished[rank].out, "");  // rank 0 speaks
    EXPECT_EQ(scratch_.Read("threads.model"), scratch_.Read("processes.model"));
  }
}

TEST_F(WorkersTest, AKilledWorkerIsNamedByTheOthersAndTheRunGoesOnFromItsCheckpointToTheSameBytes) {
  Generate("4000");
  const Arguments train = {"train",   "sea.csv", "--batch", "30",      "--epochs", "6",
                           "--quiet", "-o",      "m.model", "--codec", "int8",     "--shuffle"};
  Arguments resumable = train;
  resumable.insert(resumable.end(), {"--checkpoint", "run.ckpt", "--checkpoint-seconds", "0.05"});
  Group group = Start(3, resumable);
  ASSERT_TRUE(group[0]->WaitUntil([&] { return Exists("run.ckpt"); }));
  kill(group[2]->pid(), SIGKILL);
  const auto finished = Wait(group);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(finished[rank].code, 4) << finished[rank].err;
    ASSERT_EQ(finished[rank].ErrorLines().size(), 1u) << finished[rank].err;
    for (const char* part : {"rank 2 (", "; while "})
      EXPECT_NE(finished[rank].err.find(part), std::string::npos) << finished[rank].err;
    EXPECT_EQ(finished[rank].err.find("silent for"), std::string::npos) << "noticed at once: " << finished[rank].err;
  }
  Group again = Start(3, resumable);
  for (const Finished& one : Wait(again)) ASSERT_EQ(one.code, 0) << one.err;
  const std::string resumed = scratch_.Read("m.model");
  Group undisturbed = Start(3, train);
  for (const Finished& one : Wait(undisturbed)) ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(resumed, scratch_.Read("m.model"));
}

TEST_F(WorkersTest, AFrozenWorkerIsFoundByItsSilence) {
  Generate("20000");
  Group group = Start(3, {"train", "sea.csv", "--batch", "8", "--epochs", "1000", "--quiet", "--heartbeat", "50",
                          "--checkpoint", "run.ckpt", "--checkpoint-seconds", "0.05"});
  ASSERT_TRUE(group[0]->WaitUntil([&] { return Exists("run.ckpt"); }));
  kill(group[1]->pid(), SIGSTOP);
  for (const std::size_t rank : {0u, 2u}) {
    const Finished finished = group[rank]->Wait();
    EXPECT_EQ(finished.code, 4) << finished.err;
    ASSERT_EQ(finished.ErrorLines().size(), 1u) << finished.err;
    for (const char* part : {"rank 1 (", "silent for", "; while "})
      EXPECT_NE(finished.err.find(part), std::string::npos) << finished.err;
  }
  kill(group[1]->pid(), SIGKILL);
}

TEST_F(WorkersTest, WhatOneWorkerCannotReadEndsAllWithThatCause) {
  std::string rows;
  for (int row = 0; row < 5000; ++row) rows += row % 2 == 0 ? "1 1:1 2:1\n" : "-1 1:1 3:1\n";
  scratch_.Write("bad.svm", rows + "1 2:x\n");
  const Finished finished = Run({"train", "bad.svm", "--batch", "2", "--workers", "2", "--quiet"});
  EXPECT_EQ(finished.code, 3) << finished.err;
  EXPECT_NE(finished.err.find("bad.svm:5001"), std::string::npos) << finished.err;
}

TEST_F(WorkersTest, RefusesWhatCannotBeDoneTogether) {
  Generate("500");
  const auto refused = [&](Arguments flags, const std::string& piece, const Surroundings& around = {}) {
    flags.insert(flags.begin(), {"train", "--workers", "2", "--quiet"});
    const Finished finished = Run(flags, around);
    EXPECT_EQ(finished.code, 2) << finished.err;
    EXPECT_NE(finished.err.find(piece), std::string::npos) << finished.err;
  };
  refused({"-"}, "standard input");
  refused({"sea.csv", "--optimizer", "lbfgs"}, "lbfgs");
  refused({"sea.csv", "--batch", "1"}, "--batch 1");
  refused({"sea.csv"}, "each process is a worker",
          {.environment = {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "1"}}});
}

TEST_F(WorkersTest, WorkersWithDifferentFilesOrSettingsRefuseTogetherAndNameTheRankThatDiffers) {
  for (const std::string name : {"a", "b"})
    ASSERT_EQ(Run({"data", "generate", "--kind", "sea", "--rows", "300", "--seed", name == "a" ? "1" : "2", "-o",
                   name + ".csv"})
                  .code,
              0);
  const std::string a = scratch_.Read("a.csv");
  scratch_.Write("same.csv", a);  // another path to the same rows is fine
  scratch_.Write("changed.csv", std::string(a).replace(a.size() - 2, 1, a[a.size() - 2] == '1' ? "0" : "1"));
  const auto refused = [&](const Arguments& others, const std::string& piece) {
    const Arguments train = {"train", "a.csv", "--batch", "6", "--quiet", "-o", "m.model"};
    Arguments differing = {"train"};
    differing.insert(differing.end(), others.begin(), others.end());
    differing.insert(differing.end(), {"--quiet"});
    Group group = StartEach({train, train, differing});
    for (const Finished& one : Wait(group)) {
      EXPECT_EQ(one.code, 2) << one.err;
      ASSERT_EQ(one.ErrorLines().size(), 1u) << one.err;
      for (const std::string& part : {std::string("rank 2 ("), piece})
        EXPECT_NE(one.err.find(part), std::string::npos) << part << " is not in: " << one.err;
    }
    EXPECT_FALSE(Exists("m.model"));
  };
  refused({"b.csv", "--batch", "6"}, "workers see different files");
  refused({"changed.csv", "--batch", "6"}, "with other content");
  refused({"a.csv", "b.csv", "--batch", "6"}, "reads 2");
  refused({"a.csv", "--batch", "7"}, "batch is 6");
  refused({"a.csv", "--batch", "6", "--no-standardise"}, "standardise is true");
  refused({"a.csv", "--batch", "6", "--split", "bytes"}, "--split bytes");
  Group group = StartEach({{"train", "a.csv", "--batch", "6", "--quiet", "-o", "m.model"},
                           {"train", "same.csv", "--batch", "6", "--quiet", "--threads", "1"}});
  for (const Finished& one : Wait(group)) EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_TRUE(Exists("m.model"));
}

TEST_F(WorkersTest, ACtrlCOfOneStopsAllWithACheckpoint) {
  Generate("20000");
  Group group = Start(2, {"train", "sea.csv", "--batch", "8", "--epochs", "1000", "--quiet", "--checkpoint", "run.ckpt",
                          "--checkpoint-seconds", "0.05"});
  ASSERT_TRUE(group[0]->WaitUntil([&] { return Exists("run.ckpt"); }));
  kill(group[1]->pid(), SIGINT);
  for (const Finished& one : Wait(group)) EXPECT_EQ(one.code, 130) << one.err;
}

TEST_F(WorkersTest, NobodySaysThatTheCheckpointIsWrittenBeforeItIs) {
  Generate("20000");
  setenv("FRESHET_FAULT", "checkpoint.written:1:error", 1);
  Group group = Start(2, {"train", "sea.csv", "--batch", "8", "--epochs", "1000", "--checkpoint", "run.ckpt",
                          "--checkpoint-seconds", "1000"});
  unsetenv("FRESHET_FAULT");
  ASSERT_TRUE(group[0]->WaitUntil([&] { return group[0]->said().find(" rows") != std::string::npos; }));
  kill(group[1]->pid(), SIGTERM);
  const auto finished = Wait(group);
  for (const Finished& one : finished) {
    EXPECT_NE(one.err.find("injected fault"), std::string::npos) << one.err;
    EXPECT_EQ(one.err.find("checkpoint written"), std::string::npos) << one.err;
  }
  EXPECT_EQ(finished[1].code, 4) << finished[1].err;
}

TEST_F(WorkersTest, WhoHasStoppedDoesNotKeepTheOthersFromWritingTheirCheckpoint) {
  Generate("20000");
  for (int round = 0; round < 4; ++round) {  // one of them passes the last barrier first, and leaves
    Group group = Start(4, {"train", "sea.csv", "--batch", "8", "--epochs", "1000", "--quiet", "--checkpoint",
                            Str("run", round), "--checkpoint-seconds", "0.05"});
    ASSERT_TRUE(group[0]->WaitUntil([&] { return Exists(Str("run", round)); }));
    kill(group[1]->pid(), SIGTERM);
    for (const Finished& one : Wait(group))
      EXPECT_NE(one.err.find("freshet: stopped after "), std::string::npos) << one.err;
  }
}

}  // namespace
}  // namespace freshet::cli
