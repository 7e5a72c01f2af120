// Workers that come and go, as processes: whoever is killed or frozen, training ends with the model that nothing would
// have disturbed, and every row was learned from once.

#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "launch_testing.h"
#include "process_testing.h"

namespace freshet::cli {
namespace {

class ElasticTest : public testing::Test {
 protected:
  using Arguments = std::vector<std::string>;
  static constexpr int kRows = 12'000;

  ElasticTest() {
    EXPECT_EQ(Run({"data", "generate", "--kind", "sea", "--rows", Str(kRows), "-o", "sea.csv"}).code, 0);
  }
  Finished Run(const Arguments& arguments) { return Process(scratch_, arguments, {}).Wait(); }
  Arguments Train(Arguments flags, const Arguments& more) {
    flags.insert(flags.begin(), "launch");
    for (const char* const word :
         {"--", "train", "sea.csv", "--batch", "16", "--checkpoint", "ck", "--checkpoint-seconds", "0.02", "--json",
          "--threads", "1", "--heartbeat", "50", "-o"})
      flags.emplace_back(word);
    flags.insert(flags.end(), {"s.model", "--epochs", Str(epochs_)});
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
  // The worker that was started last with this rank.
  static pid_t WorkerOf(const Process& launch, int rank) {
    std::ifstream children(Str("/proc/", launch.pid(), "/task/", launch.pid(), "/children"));
    pid_t found = -1;
    for (pid_t pid = 0; children >> pid;) {
      std::ifstream file(Str("/proc/", pid, "/environ"), std::ios::binary);
      const std::string variables{std::istreambuf_iterator<char>(file), {}};
      if (variables.find(Str("FRESHET_RANK=", rank, '\0')) != std::string::npos) found = pid;
    }
    return found;
  }
  bool Began(Process& launch) {
    return launch.WaitUntil([&] { return access((scratch_ / "ck").c_str(), F_OK) == 0; });
  }
  static bool Says(Process& launch, const std::string& words) {
    return launch.WaitUntil([&] { return launch.said().find(words) != std::string::npos; });
  }
  double LossOf(const std::string& model) {
    const Finished judged = Run({"evaluate", "-i", model, "sea.csv", "--json"});
    EXPECT_EQ(judged.code, 0) << judged.err;
    return nlohmann::json::parse(judged.out).at("log_loss").get<double>();
  }
  void ExpectTheUndisturbedModel(const Finished& finished) {
    ASSERT_EQ(finished.code, 0) << finished.err;
    EXPECT_EQ(nlohmann::json::parse(finished.out).at("rows"), kRows * epochs_) << "each row once in every epoch";
    ASSERT_EQ(Run({"train", "sea.csv", "--batch", "16", "--epochs", Str(epochs_), "-o", "calm.model"}).code, 0);
    EXPECT_NEAR(LossOf("s.model"), LossOf("calm.model"), 1e-6);
  }

  int epochs_ = 6;
  base::ScratchDirectory scratch_;
};

// Each at its own pace, servers of parameters among them: one is killed for good, the first is started again.
TEST_F(ElasticTest, WhoeverWorksAtItsOwnPaceIsDoneWithout) {
  const std::vector<Arguments> ways = {{"server", "--synchrony", "bsp"},      {"server", "--synchrony", "ssp:3"},
                                       {"server", "--synchrony", "asp:0.01"}, {"server", "--synchrony", "bap"},
                                       {"gossip", "--gossip", "pairs"},       {"gossip", "--gossip", "push-sum"},
                                       {"gossip", "--gossip", "walk"}};
  for (const Arguments& how : ways) {
    SCOPED_TRACE(Str(how[0], " ", how[2]));
    epochs_ = how[0] == "gossip" ? 200 : 10;  // which takes about as long
    (void)unlink((scratch_ / "ck").c_str());
    Arguments flags = {"--strategy"};
    flags.insert(flags.end(), how.begin(), how.end());
    Process launch(scratch_, Train({"-n", "4", "--elastic", "2:4", "--restarts", "1"}, flags), {});
    ASSERT_TRUE(Began(launch)) << launch.said();
    kill(WorkerOf(launch, 0), SIGKILL);
    ASSERT_TRUE(Says(launch, "membership 3 → 4: rank 0 on ")) << launch.said();
    kill(WorkerOf(launch, 2), SIGKILL);
    ASSERT_TRUE(Says(launch, "membership 4 → 3: rank 2 on ")) << launch.said();
    const Finished finished = launch.Wait();
    ASSERT_EQ(finished.code, 0) << finished.err;
    EXPECT_EQ(nlohmann::json::parse(finished.out).at("rows"), kRows * epochs_) << "each row once in every epoch";
    ASSERT_EQ(Run({"train", "sea.csv", "--batch", "16", "--epochs", Str(epochs_), "-o", "calm.model"}).code, 0);
    EXPECT_NEAR(LossOf("s.model"), LossOf("calm.model"), 0.01 * LossOf("calm.model"));
  }
}

// The last of four only serves. It is killed, and what comes serves again; then a worker is.
TEST_F(ElasticTest, WhoOnlyServesIsReplacedWhileTrainingGoesOn) {
  for (const std::string synchrony : {"bsp", "ssp:3", "bap"}) {
    SCOPED_TRACE(synchrony);
    epochs_ = 10;
    (void)unlink((scratch_ / "ck").c_str());
    Process launch(scratch_,
                   Train({"-n", "4", "--elastic", "2:4", "--restarts", "1"},
                         {"--strategy", "server", "--servers", "1", "--synchrony", synchrony, "--holdout", "0.1"}),
                   {});
    ASSERT_TRUE(Began(launch)) << launch.said();
    kill(WorkerOf(launch, 3), SIGKILL);
    ASSERT_TRUE(Says(launch, "workers serve, too")) << launch.said();
    ASSERT_TRUE(Says(launch, "membership 3 → 4: rank 3 on ")) << launch.said();
    kill(WorkerOf(launch, 0), SIGKILL);
    ASSERT_TRUE(Says(launch, "membership 4 → 3: rank 0 on ")) << launch.said();
    const Finished finished = launch.Wait();
    ASSERT_EQ(finished.code, 0) << finished.err;
    const auto told = nlohmann::json::parse(finished.out);
    ASSERT_EQ(Run({"train", "sea.csv", "--batch", "16", "--epochs", "10", "--holdout", "0.1", "-o", "calm.model"}).code,
              0);
    EXPECT_EQ(told.at("rows").get<int>() % epochs_, 0) << "each row once in every epoch";
    EXPECT_NEAR(told.at("rows").get<int>(), 0.9 * kRows * epochs_, 0.01 * kRows * epochs_);
    EXPECT_NEAR(LossOf("s.model"), LossOf("calm.model"), 0.01 * LossOf("calm.model"));
  }
}

// In one long epoch: who is lost as one ends, when all have met and have everything, takes nothing along.
TEST_F(ElasticTest, OneCopyOfTheParametersIsNotEnoughToLoseAServer) {
  ASSERT_EQ(Run({"data", "generate", "--kind", "sea", "--rows", "600000", "-o", "sea.csv"}).code, 0);
  epochs_ = 1;
  Process launch(
      scratch_,
      Train({"-n", "3", "--elastic", "1:3", "--restarts", "0"},
            {"--strategy", "server", "--synchrony", "bap", "--replicas", "1", "--checkpoint-seconds", "1000"}),
      {});
  ASSERT_TRUE(Says(launch, "others may join")) << launch.said();
  usleep(300'000);
  kill(WorkerOf(launch, 1), SIGKILL);
  const Finished finished = launch.Wait();
  EXPECT_EQ(finished.code, 4) << finished.err;
  EXPECT_NE(finished.err.find("a part of the parameters is lost with all who had it: --replicas 1"), std::string::npos)
      << finished.err;
}

// Each has some columns of the model, or some layers: who is lost, its neighbour has a copy of.
TEST_F(ElasticTest, ARingClosesWithoutWhoIsKilledOrFrozenAndOpensForWhoComes) {
  struct Way {
    Arguments flags, calm;
  };
  const std::vector<Way> ways = {{{"--copy-every", "4"}, {}},
                                 {{"--model", "mlp", "--rate", "0.02", "--micro", "2"},
                                  {"--model", "mlp", "--rate", "0.02", "--accumulate", "2"}}};
  for (const Way& way : ways) {
    SCOPED_TRACE(way.flags[1]);
    epochs_ = 10;
    (void)unlink((scratch_ / "ck").c_str());
    Arguments flags = {"--strategy", "ring"};
    flags.insert(flags.end(), way.flags.begin(), way.flags.end());
    Process launch(scratch_, Train({"-n", "3", "--elastic", "2:3", "--restarts", "1", "--frozen", "1"}, flags), {});
    ASSERT_TRUE(Began(launch)) << launch.said();
    kill(WorkerOf(launch, 1), SIGKILL);
    ASSERT_TRUE(Says(launch, "membership 3 → 2: rank 1 on ")) << launch.said();
    ASSERT_TRUE(Says(launch, "membership 2 → 3: rank 1 on ")) << launch.said();
    kill(WorkerOf(launch, 0), SIGSTOP);
    ASSERT_TRUE(launch.WaitUntil([&] { return launch.said().find(": rank 0 on ") != std::string::npos; }))
        << launch.said();
    const Finished finished = launch.Wait();
    ASSERT_EQ(finished.code, 0) << finished.err;
    EXPECT_EQ(nlohmann::json::parse(finished.out).at("rows"), kRows * epochs_) << "each row once in every epoch";
    Arguments calm = {"train", "sea.csv", "--batch", "16", "--epochs", Str(epochs_), "-o", "calm.model"};
    calm.insert(calm.end(), way.calm.begin(), way.calm.end());
    ASSERT_EQ(Run(calm).code, 0);
    EXPECT_NEAR(LossOf("s.model"), LossOf("calm.model"), 1e-5);
  }
}

TEST_F(ElasticTest, TwoNeighboursOfARingLostAtOnceEndIt) {
  ASSERT_EQ(Run({"data", "generate", "--kind", "sea", "--rows", "600000", "-o", "sea.csv"}).code, 0);
  epochs_ = 1;
  Process launch(scratch_,
                 Train({"-n", "4", "--elastic", "1:4", "--restarts", "0"},
                       {"--strategy", "ring", "--copy-every", "1", "--checkpoint-seconds", "1000"}),
                 {});
  ASSERT_TRUE(Says(launch, "others may join")) << launch.said();
  usleep(300'000);
  const pid_t one = WorkerOf(launch, 1), next = WorkerOf(launch, 2);
  kill(one, SIGSTOP);  // so that neither goes on without the other
  kill(next, SIGKILL);
  kill(one, SIGKILL);
  const Finished finished = launch.Wait();
  EXPECT_EQ(finished.code, 4) << finished.err;
  EXPECT_NE(finished.err.find("a part of the model is lost with both who had it: rank 1 on "), std::string::npos)
      << finished.err;
}

// While processes start, find each other, agree, look at the data: there is nothing to go on with yet.
TEST_F(ElasticTest, WhoIsKilledBeforeAllHaveMetMakesThemBeginAgain) {
  epochs_ = 2;
  int began_again = 0;
  for (const int rank : {0, 2})
    for (const int after_ms : {0, 2, 5, 10, 20, 40}) {
      SCOPED_TRACE(Str("rank ", rank, " after ", after_ms, " ms"));
      (void)unlink((scratch_ / "ck").c_str());
      Process launch(scratch_, Train({"-n", "4", "--elastic", "2:4"}, {}), {});
      ASSERT_TRUE(launch.WaitUntil([&] { return WorkerOf(launch, rank) > 0; }));
      usleep(static_cast<useconds_t>(after_ms) * 1000);
      kill(WorkerOf(launch, rank), SIGKILL);
      const Finished finished = launch.Wait();
      if (finished.err.find("before all had met; all begin again") != std::string::npos) ++began_again;
      ExpectTheUndisturbedModel(finished);
    }
  EXPECT_GT(began_again, 0);
}

TEST_F(ElasticTest, GoesOnWithoutWhoIsKilledTheFirstAmongThem) {
  Process launch(scratch_, Train({"-n", "4", "--elastic", "2:4", "--restarts", "0"}, {}), {});
  ASSERT_TRUE(Began(launch)) << launch.said();
  std::vector<pid_t> workers;
  for (int rank = 0; rank < 4; ++rank) workers.push_back(WorkerOf(launch, rank));
  kill(workers[2], SIGKILL);
  ASSERT_TRUE(Says(launch, "membership 4 → 3: rank 2 on ")) << launch.said();
  kill(workers[0], SIGKILL);
  ASSERT_TRUE(Says(launch, "membership 3 → 2: rank 0 on ")) << launch.said();
  const Finished finished = launch.Wait();
  EXPECT_NE(finished.err.find("is gone, killed by signal 9; step "), std::string::npos) << finished.err;
  for (const pid_t worker : workers) EXPECT_TRUE(Gone(worker));
  ExpectTheUndisturbedModel(finished);
}

TEST_F(ElasticTest, WhoIsKilledIsStartedAgainAndLetIn) {
  Process launch(scratch_, Train({"-n", "4", "--elastic", "2:4"}, {}), {});
  ASSERT_TRUE(Began(launch)) << launch.said();
  kill(WorkerOf(launch, 1), SIGKILL);
  ASSERT_TRUE(Says(launch, "membership 3 → 4: rank 1 on ")) << launch.said();
  ExpectTheUndisturbedModel(launch.Wait());
}

// Each reads some parts of the input, others those of who is lost, and who comes takes some.
TEST_F(ElasticTest, PartsOfTheInputAreHandedOver) {
  Process launch(scratch_,
                 Train({"-n", "3", "--elastic", "2:5", "--restarts", "1"}, {"--split", "bytes", "--holdout", "0.1"}),
                 {});
  ASSERT_TRUE(Began(launch)) << launch.said();
  kill(WorkerOf(launch, 2), SIGKILL);
  ASSERT_TRUE(Says(launch, "membership 2 → 3: rank 2 on ")) << launch.said();
  kill(WorkerOf(launch, 0), SIGKILL);
  const Finished finished = launch.Wait();
  ASSERT_EQ(finished.code, 0) << finished.err;
  const auto json = nlohmann::json::parse(finished.out);
  Arguments calm = Train({"-n", "4", "--elastic", "2:5"}, {"--split", "bytes", "--holdout", "0.1"});
  *std::find(calm.begin(), calm.end(), "s.model") = "calm.model";
  *std::find(calm.begin(), calm.end(), "ck") = "calm.ck";
  const Finished undisturbed = Run(calm);
  ASSERT_EQ(undisturbed.code, 0) << undisturbed.err;
  const auto quiet = nlohmann::json::parse(undisturbed.out);
  EXPECT_EQ(json.at("rows"), quiet.at("rows")) << "each row once in every epoch";
  EXPECT_NEAR(LossOf("s.model"), LossOf("calm.model"), 1e-6);
}

TEST_F(ElasticTest, EndsWithTheBitsOfAnUndisturbedRunWhereSumsAreExact) {
  Process launch(scratch_, Train({"-n", "4", "--elastic", "2:4", "--restarts", "1"}, {"--exact", "--trace", "t.json"}),
                 {});
  ASSERT_TRUE(Began(launch)) << launch.said();
  kill(WorkerOf(launch, 2), SIGKILL);
  ASSERT_TRUE(Says(launch, "membership 3 → 4: rank 2 on ")) << launch.said();
  kill(WorkerOf(launch, 0), SIGKILL);
  const Finished finished = launch.Wait();
  ASSERT_EQ(finished.code, 0) << finished.err;
  const auto json = nlohmann::json::parse(finished.out);
  EXPECT_EQ(json.at("membership").at("lost"), 2) << finished.out;
  EXPECT_EQ(json.at("membership").at("came"), 1);
  Arguments calm = Train({"-n", "3"}, {"--exact"});
  *std::find(calm.begin(), calm.end(), "s.model") = "calm.model";
  *std::find(calm.begin(), calm.end(), "ck") = "calm.ck";
  ASSERT_EQ(Run(calm).code, 0);
  const auto weights = [&](const std::string& model) {
    return Run({"export", "-i", model, "--onnx", model + ".onnx"}).code == 0 ? scratch_.Read(model + ".onnx") : "";
  };
  EXPECT_FALSE(weights("s.model").empty());
  EXPECT_EQ(weights("s.model"), weights("calm.model"));
  // Who was there in the end is in the trace, and so are the changes.
  const auto trace = nlohmann::json::parse(scratch_.Read("t.json"));
  int changes = 0;
  for (const auto& event : trace)
    if (event.at("name") == "membership") {
      EXPECT_NE(event.at("args").at("note").get<std::string>().find("membership "), std::string::npos);
      ++changes;
    }
  EXPECT_GE(changes, 3);
}

TEST_F(ElasticTest, WhoIsFrozenIsDoneWithout) {
  Process launch(scratch_, Train({"-n", "4", "--elastic", "2:4", "--restarts", "0", "--frozen", "1"}, {}), {});
  ASSERT_TRUE(Began(launch)) << launch.said();
  const pid_t frozen = WorkerOf(launch, 3);
  kill(frozen, SIGSTOP);
  ASSERT_TRUE(Says(launch, "membership 4 → 3: rank 3 on ")) << launch.said();
  const Finished finished = launch.Wait();
  EXPECT_TRUE(SoonGone(frozen));
  ExpectTheUndisturbedModel(finished);
}

TEST_F(ElasticTest, TooFewStopWithCodeFourAndTheRunCanGoOn) {
  Process launch(scratch_, Train({"-n", "2", "--elastic", "2:2", "--restarts", "0"}, {}), {});
  ASSERT_TRUE(Began(launch)) << launch.said();
  kill(WorkerOf(launch, 0), SIGKILL);
  const Finished stopped = launch.Wait();
  EXPECT_NE(stopped.err.find("1 worker is left, and at least 2 are needed; checkpoint written to ck"),
            std::string::npos)
      << stopped.err;
  EXPECT_EQ(stopped.code, 4);
  ExpectTheUndisturbedModel(Run(Train({"-n", "4", "--elastic", "2:4"}, {})));
}

TEST_F(ElasticTest, AStrangerSeesNothingAndWhoKnowsTheJobSeesItsWorkersAndJoinsThem) {
  epochs_ = 30;  // who joins has to be started meanwhile
  for (const char* const name : {"token", "other"}) {
    const std::string path = scratch_.Write(name, std::string(32, name[0]));
    chmod(path.c_str(), 0600);
  }
  Process launch(scratch_, Train({"-n", "2", "--elastic", "1:4", "--job", "nightly", "--token-file", "token"}, {}), {});
  ASSERT_TRUE(Began(launch)) << launch.said();
  const std::string said = launch.said(), mark = "others may join at ";
  ASSERT_NE(said.find(mark), std::string::npos) << said;
  const std::size_t from = said.find(mark) + mark.size();
  const std::string address = said.substr(from, said.find(',', from) - from);
  Process ps(scratch_, {"ps", address, "--job", "nightly", "--token-file", "token", "--json"}, {});
  Process stranger(scratch_, {"ps", address, "--job", "nightly", "--token-file", "other"}, {});
  Arguments join = Train({}, {}), other = Train({}, {"--l2", "0.1"});
  for (Arguments* const arguments : {&join, &other}) {
    (*arguments)[0] = "join";
    arguments->insert(arguments->begin() + 1, {address, "--job", "nightly", "--token-file", "token"});
  }
  Process wrong(scratch_, other, {}), comes(scratch_, join, {});
  ASSERT_TRUE(Says(launch, "a worker on ")) << launch.said();
  const Finished seen = ps.Wait(), refused = wrong.Wait(), came = comes.Wait();
  ASSERT_EQ(seen.code, 0) << seen.err;
  EXPECT_GE(nlohmann::json::parse(seen.out).at("workers").size(), 2u) << seen.out;
  EXPECT_EQ(stranger.Wait().code, 1);
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("the others train something else (theirs: l2 = 0.0, now l2 = 0.1)"), std::string::npos)
      << refused.err;
  EXPECT_EQ(came.code, 0) << came.err;
  ExpectTheUndisturbedModel(launch.Wait());
}

TEST_F(ElasticTest, RefusesWhatItCannotKeep) {
  for (const Arguments& flags : std::vector<Arguments>{{"--split", "own"}, {"--cache", "rows"}, {"--evict", "0.5"}}) {
    const Finished refused = Run(Train({"-n", "2", "--elastic", "1:2"}, flags));
    EXPECT_EQ(refused.code, 2) << flags[0];
    EXPECT_NE(refused.err.find(Str("--elastic does not go with ", flags[0])), std::string::npos) << refused.err;
  }
  const Finished parts = Run(Train({"-n", "2", "--elastic", "1:2"}, {"--split", "bytes", "--exact"}));
  EXPECT_EQ(parts.code, 2);
  EXPECT_NE(parts.err.find("use --split rows"), std::string::npos) << parts.err;
  const Finished refused = Run(Train({"-n", "2", "--elastic", "1:20"}, {}));  // batches of 16
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("--batch 16 has no row for some of the 20 workers that may come (--elastic)"),
            std::string::npos)
      << refused.err;
  const Finished few = Run(Train({"-n", "2", "--elastic", "3:4"}, {}));
  EXPECT_EQ(few.code, 2);
  EXPECT_NE(few.err.find("--elastic: 2 workers, at least 3"), std::string::npos) << few.err;
  for (const char* const bounds : {"3:2", "x", "2", "0:4", "2:"})
    EXPECT_EQ(Run(Train({"-n", "2", "--elastic", bounds}, {})).code, 2) << bounds;
}

}  // namespace
}  // namespace freshet::cli
