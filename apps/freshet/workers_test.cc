// Several workers as their users meet them: in one process, in several, and when one of them is gone.

#include <nlohmann/json.hpp>

#include "workers_testing.h"

namespace freshet::cli {
namespace {

TEST_F(WorkersTest, ThreadsAndProcessesGiveTheSameModelWhateverTheStrategy) {
  Generate("3000");
  for (const std::string kind : {"allreduce", "average", "groups"}) {
    SCOPED_TRACE(kind);
    Arguments train = {"train", "sea.csv", "--batch", "24", "--strategy", kind, "--topology", "central", "--quiet"};
    if (kind != "allreduce") train.insert(train.end(), {"--every", "3"});
    Arguments threads = train, processes = train;
    threads.insert(threads.end(), {"--workers", "4", "-o", "threads.model"});
    processes.insert(processes.end(), {"-o", "processes.model"});
    const Finished in_one = Run(threads);
    ASSERT_EQ(in_one.code, 0) << in_one.err;
    Fleet fleet = Start(4, processes);
    const auto finished = Wait(fleet);
    for (const Finished& one : finished) ASSERT_EQ(one.code, 0) << one.err;
    EXPECT_FALSE(finished[0].out.empty());
    for (std::size_t rank = 1; rank < 4; ++rank) EXPECT_EQ(finished[rank].out, "");  // rank 0 speaks
    EXPECT_EQ(scratch_.Read("threads.model"), scratch_.Read("processes.model"));
  }
}

TEST_F(WorkersTest, LbfgsFindsWhatOneWorkerFindsOnThreadsAndInProcessesAndWithRowsOfTheirOwn) {
  Generate("3000");
  const std::string all = scratch_.Read("sea.csv");
  const auto lines = Split(all, '\n');
  std::string parts[2] = {Str(lines[0], "\n"), Str(lines[0], "\n")};
  for (std::size_t i = 1; i + 1 < lines.size(); ++i) parts[i % 5 == 0 ? 0 : 1] += Str(lines[i], "\n");
  for (int rank = 0; rank < 2; ++rank) scratch_.Write(Str("part-", rank, ".csv"), parts[rank]);
  const auto train = [](const Arguments& more) {
    Arguments all_flags = {"train",      "--optimizer", "lbfgs",  "--l2",   "0.001",
                           "--topology", "central",     "--json", "--quiet"};
    all_flags.insert(all_flags.end(), more.begin(), more.end());
    return all_flags;
  };
  const auto loss = [](const Finished& finished) {
    EXPECT_EQ(finished.code, 0) << finished.err;
    if (finished.code != 0) return 0.0;
    const auto json = nlohmann::json::parse(finished.out, nullptr, false);
    EXPECT_EQ(json["last_epoch"]["rows"], 3000);
    return json["last_epoch"]["log_loss"].get<double>();
  };
  const double alone = loss(Run(train({"sea.csv"})));
  for (const std::string strategy : {"allreduce", "server"}) {
    SCOPED_TRACE(strategy);
    EXPECT_NEAR(loss(Run(train({"sea.csv", "--strategy", strategy, "--workers", "2", "-o", "threads.model"}))), alone,
                1e-4);
    Fleet processes = Start(2, train({"sea.csv", "--strategy", strategy, "-o", "processes.model"}));
    EXPECT_NEAR(loss(Wait(processes)[0]), alone, 1e-4);
    EXPECT_EQ(scratch_.Read("threads.model"), scratch_.Read("processes.model"));
    Fleet own = Start(2, train({"part-{rank}.csv", "--split", "own", "--strategy", strategy}));
    EXPECT_NEAR(loss(Wait(own)[0]), alone, 1e-4);
  }
}

TEST_F(WorkersTest, AKilledWorkerIsNamedByTheOthersAndTheRunGoesOnFromItsCheckpointToTheSameBytes) {
  Generate("4000");
  const Arguments train = {"train",   "sea.csv", "--batch", "30",      "--epochs", "6",
                           "--quiet", "-o",      "m.model", "--codec", "int8",     "--shuffle"};
  Arguments resumable = train;
  resumable.insert(resumable.end(), {"--checkpoint", "run.ckpt", "--checkpoint-seconds", "0.05"});
  Fleet fleet = Start(3, resumable);
  ASSERT_TRUE(fleet[0]->WaitUntil([&] { return Exists("run.ckpt"); }));
  kill(fleet[2]->pid(), SIGKILL);
  const auto finished = Wait(fleet);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(finished[rank].code, 4) << finished[rank].err;
    ASSERT_EQ(finished[rank].ErrorLines().size(), 1u) << finished[rank].err;
    for (const char* part : {"rank 2 (", "; while "})
      EXPECT_NE(finished[rank].err.find(part), std::string::npos) << finished[rank].err;
    EXPECT_EQ(finished[rank].err.find("silent for"), std::string::npos) << "noticed at once: " << finished[rank].err;
  }
  Fleet again = Start(3, resumable);
  for (const Finished& one : Wait(again)) ASSERT_EQ(one.code, 0) << one.err;
  const std::string resumed = scratch_.Read("m.model");
  Fleet undisturbed = Start(3, train);
  for (const Finished& one : Wait(undisturbed)) ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(resumed, scratch_.Read("m.model"));
}

TEST_F(WorkersTest, AFrozenWorkerIsFoundByItsSilence) {
  Generate("20000");
  Fleet fleet = Start(3, {"train", "sea.csv", "--batch", "8", "--epochs", "1000", "--quiet", "--heartbeat", "50",
                          "--checkpoint", "run.ckpt", "--checkpoint-seconds", "0.05"});
  ASSERT_TRUE(fleet[0]->WaitUntil([&] { return Exists("run.ckpt"); }));
  kill(fleet[1]->pid(), SIGSTOP);
  for (const std::size_t rank : {0u, 2u}) {
    const Finished finished = fleet[rank]->Wait();
    EXPECT_EQ(finished.code, 4) << finished.err;
    ASSERT_EQ(finished.ErrorLines().size(), 1u) << finished.err;
    for (const char* part : {"rank 1 (", "silent for", "; while "})
      EXPECT_NE(finished.err.find(part), std::string::npos) << finished.err;
  }
  kill(fleet[1]->pid(), SIGKILL);
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
  refused({"-"}, "--split own");
  refused({"sea.csv", "--split", "own"}, "freshet launch -n 2");
  refused({"sea.csv", "--optimizer", "lbfgs", "--codec", "fp16"}, "--codec fp16");
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
    Fleet fleet = StartEach({train, train, differing});
    for (const Finished& one : Wait(fleet)) {
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
  Fleet fleet = StartEach({{"train", "a.csv", "--batch", "6", "--quiet", "-o", "m.model"},
                           {"train", "same.csv", "--batch", "6", "--quiet", "--threads", "1"}});
  for (const Finished& one : Wait(fleet)) EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_TRUE(Exists("m.model"));
}

TEST_F(WorkersTest, RankZeroTakesAnyFreePortAndAnnouncesItForTheOthersToBeTold) {
  Generate("300");
  const std::string token = scratch_.Write("token", std::string(32, 'k'));
  chmod(token.c_str(), 0600);
  const auto member = [&](int rank, const std::string& rendezvous, const std::string& announce) {
    Arguments arguments = {"train",   "sea.csv", "--batch",      "2",     "--quiet",        "--world", "2",
                           "--rank",  Str(rank), "--token-file", "token", "--join-timeout", "60",      "--rendezvous",
                           rendezvous};
    if (!announce.empty()) arguments.insert(arguments.end(), {"--announce", announce});
    return std::make_unique<Process>(scratch_, arguments, Surroundings());
  };
  for (const std::string announce : {"where", "fd:2"}) {
    SCOPED_TRACE(announce);
    const auto first = member(0, "127.0.0.1:0", announce);
    std::string where;
    ASSERT_TRUE(first->WaitUntil([&] {
      where = announce == "where" ? scratch_.Read("where") : first->said();
      return where.ends_with('\n');
    })) << first->Wait().err;
    where.pop_back();
    ASSERT_TRUE(where.starts_with("127.0.0.1:")) << where;
    EXPECT_FALSE(where.ends_with(":0"));
    EXPECT_EQ(member(1, where, "")->Wait().code, 0);
    const Finished finished = first->Wait();
    EXPECT_EQ(finished.code, 0) << finished.err;
  }
  EXPECT_EQ(member(0, "127.0.0.1:0", "")->Wait().code, 2);
  EXPECT_EQ(member(1, "127.0.0.1:0", "there")->Wait().code, 2);
  EXPECT_EQ(member(0, "127.0.0.1:0", "fd:77")->Wait().code, 2);
}

TEST_F(WorkersTest, WhoIsAloneAfterTheJoinTimeoutNamesWhoIsMissing) {
  Generate("300");
  Surroundings around;
  around.environment = {{"FRESHET_RANK", "0"}, {"FRESHET_WORLD", "2"}, {"XDG_RUNTIME_DIR", scratch_.path()}};
  const Finished finished = Run(
      {"train", "sea.csv", "--quiet", "--rendezvous", Str("127.0.0.1:", FreePort()), "--join-timeout", "1"}, around);
  EXPECT_EQ(finished.code, 1) << finished.err;
  EXPECT_NE(finished.err.find("missing rank 1"), std::string::npos) << finished.err;
}

TEST_F(WorkersTest, ACtrlCOfOneStopsAllWithACheckpoint) {
  Generate("20000");
  Fleet fleet = Start(2, {"train", "sea.csv", "--batch", "8", "--epochs", "1000", "--quiet", "--checkpoint", "run.ckpt",
                          "--checkpoint-seconds", "0.05"});
  ASSERT_TRUE(fleet[0]->WaitUntil([&] { return Exists("run.ckpt"); }));
  kill(fleet[1]->pid(), SIGINT);
  for (const Finished& one : Wait(fleet)) EXPECT_EQ(one.code, 130) << one.err;
}

TEST_F(WorkersTest, NobodySaysThatTheCheckpointIsWrittenBeforeItIs) {
  Generate("20000");
  setenv("FRESHET_FAULT", "checkpoint.written:1:error", 1);
  Fleet fleet = Start(2, {"train", "sea.csv", "--batch", "8", "--epochs", "1000", "--checkpoint", "run.ckpt",
                          "--checkpoint-seconds", "1000"});
  unsetenv("FRESHET_FAULT");
  ASSERT_TRUE(fleet[0]->WaitUntil([&] { return fleet[0]->said().find(" rows") != std::string::npos; }));
  kill(fleet[1]->pid(), SIGTERM);
  const auto finished = Wait(fleet);
  for (const Finished& one : finished) {
    EXPECT_NE(one.err.find("injected fault"), std::string::npos) << one.err;
    EXPECT_EQ(one.err.find("checkpoint written"), std::string::npos) << one.err;
  }
  EXPECT_EQ(finished[1].code, 4) << finished[1].err;
}

TEST_F(WorkersTest, WhoHasStoppedDoesNotKeepTheOthersFromWritingTheirCheckpoint) {
  Generate("20000");
  for (int round = 0; round < 4; ++round) {  // one of them passes the last barrier first, and leaves
    Fleet fleet = Start(4, {"train", "sea.csv", "--batch", "8", "--epochs", "1000", "--quiet", "--checkpoint",
                            Str("run", round), "--checkpoint-seconds", "0.05"});
    ASSERT_TRUE(fleet[0]->WaitUntil([&] { return Exists(Str("run", round)); }));
    kill(fleet[1]->pid(), SIGTERM);
    for (const Finished& one : Wait(fleet))
      EXPECT_NE(one.err.find("freshet: stopped after "), std::string::npos) << one.err;
  }
}

}  // namespace
}  // namespace freshet::cli
