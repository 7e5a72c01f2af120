// Several workers: what is saved when they stop, and who can go on from it.

#include <nlohmann/json.hpp>

#include "base/random.h"
#include "fabric/threads/threads_testing.h"
#include "model/network/description.h"
#include "model/network/zoo.h"
#include "train/bench_testing.h"

namespace freshet::train {
namespace {

class TrainerWorkersTest : public testing::Test {
 protected:
  Plan Sea(std::uint64_t rows) {
    Plan plan;
    plan.path = bench_.Generate({.kind = "sea", .rows = rows}, Str("sea", rows));
    plan.optimizer.kind = "adagrad";
    plan.optimizer.schedule = {"linear", 0.15};
    plan.train.batch = 12;
    plan.train.epochs = 2;
    plan.train.checkpoint_path = bench_.scratch / "run.ckpt";
    plan.clock_runs = true;
    return plan;
  }
  // Rows that name new features as they go.
  Plan Sparse(int rows) {
    base::Random random(5, "rows");
    std::string text;
    for (int row = 0; row < rows; ++row) {
      text += random.Below(2) == 0 ? "+1" : "-1";
      for (int j = 1; j <= row + 5; ++j)
        if (random.Below(8) == 0) text += Str(" ", j, ":1");
      text += "\n";
    }
    Plan plan = Sea(10);
    plan.path = bench_.scratch.Write(Str("sparse", rows), text);
    return plan;
  }

  // What rank 0 has at the end.
  BenchOutcome Together(int workers, const Plan& plan) {
    std::vector<BenchOutcome> outcomes(static_cast<std::size_t>(workers));
    fabric::RunMembers(workers, [&](fabric::Fabric& fabric) {
      outcomes[static_cast<std::size_t>(fabric.rank())] = bench_.RunAs(fabric, plan);
    });
    return outcomes[0];
  }
  void Forget() {
    for (const std::string& name : bench_.scratch.Names())
      if (name.starts_with("run.ckpt")) ASSERT_TRUE(bench_.files.Remove(bench_.scratch / name).ok());
  }
  std::vector<std::string> Parts() {
    std::vector<std::string> parts;
    for (const std::string& name : bench_.scratch.Names())
      if (name.find(".rank") != std::string::npos && name.find(".save") != std::string::npos) parts.push_back(name);
    return parts;
  }

  // Stops after some of the updates of a run and compares who goes on with never having stopped.
  void StopHereAndThere(int workers, Plan plan, int tries = 8) {
    const BenchOutcome whole = Together(workers, plan);
    ASSERT_TRUE(whole.ok()) << whole.error->text;
    for (int i = 1; i <= tries; ++i) {
      SCOPED_TRACE(Str("stopped at ", whole.told * i / (tries + 1), " of ", whole.told));
      Forget();
      plan.stop_at = std::max(whole.told * i / (tries + 1), 1);
      const BenchOutcome stopped = Together(workers, plan);
      ASSERT_FALSE(stopped.ok());
      ASSERT_EQ(stopped.code(), Code::kStopped) << stopped.error->text;
      ASSERT_EQ(Parts().size(), static_cast<std::size_t>(workers));
      plan.stop_at = 0;
      ExpectSame(Together(workers, plan), whole);
      if (testing::Test::HasFailure()) return;
    }
    Forget();
  }

  Bench bench_;
};

TEST_F(TrainerWorkersTest, GoOnAsIfTheyHadNeverStoppedAfterAnyUpdate) {
  for (const std::string kind : {"allreduce", "average", "groups"})
    for (const bool shuffle : {false, true}) {
      SCOPED_TRACE(Str(kind, shuffle ? " shuffled" : ""));
      Plan plan = Sea(200);
      plan.strategy.kind = kind;
      plan.strategy.every = 2;
      plan.strategy.group = 1;
      plan.strategy.block_momentum = kind == "average" ? 0.5 : 0;
      plan.train.shuffle = shuffle;
      plan.train.hold_out.fraction = shuffle ? 0.2 : 0;
      StopHereAndThere(2, plan, 5);
    }
}

// Who waits for nobody stops at a place of its own, and goes on from there.
TEST_F(TrainerWorkersTest, WhoOnlyGossipLearnFromEachRowOnceThoughTheyAreStopped) {
  for (const bool whole : {true, false})
    for (const std::string gossip : {"pairs", "push-sum", "walk"}) {
      SCOPED_TRACE(Str(gossip, whole ? " of all rows" : " of their own"));
      Plan plan = Sparse(300);
      plan.strategy.kind = "gossip";
      plan.strategy.gossip = gossip;
      plan.strategy.every = 2;
      plan.strategy.whole = whole;
      const BenchOutcome calm = Together(3, plan);
      ASSERT_TRUE(calm.ok()) << calm.error->text;
      for (int i = 1; i <= 3; ++i) {
        Forget();
        plan.stop_at = std::max(calm.told * i / 5, 1);
        const BenchOutcome stopped = Together(3, plan);
        ASSERT_FALSE(stopped.ok());
        ASSERT_EQ(stopped.code(), Code::kStopped) << stopped.error->text;
        ASSERT_EQ(Parts().size(), 3u);
        plan.stop_at = 0;
        const BenchOutcome resumed = Together(3, plan);
        ASSERT_TRUE(resumed.ok()) << resumed.error->text;
        EXPECT_EQ(resumed.report->rows, calm.report->rows);
        EXPECT_EQ(resumed.report->progressive.rows(), calm.report->progressive.rows());
        EXPECT_NEAR(resumed.report->last_epoch.loss(), calm.report->last_epoch.loss(), 0.1);
      }
      Forget();
    }
}

// Workers of a parameter server stop at one clock where they may wait for each other, and each where it is else.
TEST_F(TrainerWorkersTest, WhoHaveServersLearnFromEachRowOnceThoughTheyAreStopped) {
  for (const bool whole : {true, false})
    for (const std::string synchrony : {"bsp", "ssp:2", "asp:0.001", "bap"})
      for (const int servers : {0, 1}) {
        if (servers > 0 && !whole) continue;  // their rows would be lost
        SCOPED_TRACE(Str(synchrony, whole ? " of all rows, " : " of their own, ", servers, " servers"));
        Plan plan = Sparse(300);
        plan.strategy.kind = "server";
        plan.strategy.synchrony = synchrony;
        plan.strategy.servers = servers;
        plan.strategy.whole = whole;
        const int members = 3 + servers;
        const BenchOutcome calm = Together(members, plan);
        ASSERT_TRUE(calm.ok()) << calm.error->text;
        for (int i = 1; i <= 2; ++i) {
          Forget();
          plan.stop_at = std::max(calm.told * i / 5, 1);
          const BenchOutcome stopped = Together(members, plan);
          ASSERT_FALSE(stopped.ok());
          ASSERT_EQ(stopped.code(), Code::kStopped) << stopped.error->text;
          plan.stop_at = 0;
          const BenchOutcome resumed = Together(members, plan);
          ASSERT_TRUE(resumed.ok()) << resumed.error->text;
          EXPECT_EQ(resumed.report->rows, calm.report->rows);
          EXPECT_EQ(resumed.report->progressive.rows(), calm.report->progressive.rows());
          EXPECT_NEAR(resumed.report->last_epoch.loss(), calm.report->last_epoch.loss(), 0.1);
          if (synchrony == "bsp" && whole) EXPECT_EQ(resumed.weights, calm.weights);
        }
        Forget();
      }
}

// Groups do, too, whoever of them is told to stop.
TEST_F(TrainerWorkersTest, GroupsThroughServersLearnFromEachRowOnceThoughTheyAreStopped) {
  for (const std::string synchrony : {"bsp", "ssp:2", "asp:0.001", "bap"})
    for (const int servers : {0, 1}) {
      SCOPED_TRACE(Str(synchrony, ", ", servers, " servers"));
      Plan plan = Sparse(150);
      plan.strategy.kind = "groups";
      plan.strategy.synchrony = synchrony;
      plan.strategy.servers = servers;
      const int members = 4 + servers;
      const BenchOutcome calm = Together(members, plan);
      ASSERT_TRUE(calm.ok()) << calm.error->text;
      EXPECT_EQ(calm.report->progressive.rows(), 150u);
      for (const int fifths : {2}) {
        Forget();
        plan.stop_at = std::max(calm.told * fifths / 5, 1);
        const BenchOutcome stopped = Together(members, plan);
        ASSERT_FALSE(stopped.ok());
        ASSERT_EQ(stopped.code(), Code::kStopped) << stopped.error->text;
        plan.stop_at = 0;
        const BenchOutcome resumed = Together(members, plan);
        ASSERT_TRUE(resumed.ok()) << resumed.error->text;
        EXPECT_EQ(resumed.report->rows, calm.report->rows);
        EXPECT_EQ(resumed.report->progressive.rows(), calm.report->progressive.rows());
        EXPECT_NEAR(resumed.report->last_epoch.loss(), calm.report->last_epoch.loss(), 0.1);
        if (synchrony == "bsp") EXPECT_EQ(resumed.weights, calm.weights);
      }
      Forget();
    }
}

TEST_F(TrainerWorkersTest, GoOnAsIfTheyHadNeverStoppedWithWhatACodecHeldBack) {
  for (const std::string codec : {"int8", "1bit", "topk"}) {
    SCOPED_TRACE(codec);
    Plan plan = Sea(200);
    plan.strategy.codec = codec;
    StopHereAndThere(2, plan, 4);
  }
}

// What is dropped goes by the number of updates.
TEST_F(TrainerWorkersTest, WhoHaveServersGoOnAsIfTheyHadNeverStoppedWithANetworkThatDropsSome) {
  Plan plan = Sea(200);
  plan.model.kind = "network";
  plan.model.features = 3;
  plan.model.network = ToToml(model::network::MakeZoo("mlp", {3}, 1, {.hidden = 8, .dropout = 0.5}).value());
  plan.strategy.kind = "server";
  StopHereAndThere(2, plan, 4);
}

TEST_F(TrainerWorkersTest, WhoHaveServersGoOnAsIfTheyHadNeverStoppedWithWhatACodecHeldBack) {
  for (const bool sparse : {false, true})
    for (const std::string codec : {"int8", "1bit", "topk"}) {
      Forget();
      SCOPED_TRACE(Str(codec, sparse ? " of touched rows" : ""));
      Plan plan = sparse ? Sparse(100) : Sea(200);
      plan.strategy.kind = "server";
      plan.strategy.codec = codec;
      plan.strategy.top = 0.3;
      plan.strategy.warm_start = 3;
      StopHereAndThere(2, plan, 3);
    }
}

TEST_F(TrainerWorkersTest, OfServersACodecIsForFeaturesThatOthersHaveNotMet) {
  Plan plan = Sparse(300);
  plan.strategy.kind = "server";
  plan.strategy.whole = false;
  const BenchOutcome plain = Together(3, plan);
  ASSERT_TRUE(plain.ok()) << plain.error->text;
  for (const std::string codec : {"fp16", "int8", "1bit", "topk"}) {
    SCOPED_TRACE(codec);
    Forget();
    plan.strategy.codec = codec;
    plan.strategy.top = 0.3;
    const BenchOutcome encoded = Together(3, plan);
    ASSERT_TRUE(encoded.ok()) << encoded.error->text;
    EXPECT_EQ(encoded.report->rows, plain.report->rows);
    EXPECT_NEAR(encoded.report->last_epoch.loss(), plain.report->last_epoch.loss(), 0.05);
  }
}

TEST_F(TrainerWorkersTest, GoOnAsIfTheyHadNeverStoppedThoughSomeHaveMadeMoreUpdates) {
  for (const bool whole : {true, false}) {
    SCOPED_TRACE(whole ? "of all rows" : "of their own");
    Plan plan = Sparse(80);
    plan.optimizer.kind = "adam";  // which goes by the number of updates
    plan.optimizer.schedule = {"constant", 0.05};
    plan.strategy.kind = "average";
    plan.strategy.every = 5;
    plan.strategy.whole = whole;
    plan.train.batch = 3;  // single rows: the last five of an epoch are not shared out equally
    plan.train.epochs = 3;
    StopHereAndThere(3, plan, 8);
  }
}

TEST_F(TrainerWorkersTest, GoOnAsIfTheyHadNeverStoppedWithRowsOfTheirOwn) {
  for (const bool shuffle : {false, true}) {
    SCOPED_TRACE(shuffle ? "shuffled" : "in order");
    Plan plan = Sparse(80);
    plan.strategy.whole = false;
    plan.train.shuffle = shuffle;
    plan.train.batch = 6;
    StopHereAndThere(3, plan, 8);
  }
}

TEST_F(TrainerWorkersTest, AnotherNumberGoesOnWhereNoWorkerHasAnythingOfItsOwn) {
  for (const bool sparse : {false, true}) {
    SCOPED_TRACE(sparse ? "sparse" : "dense");
    Plan plan = sparse ? Sparse(100) : Sea(200);
    const BenchOutcome whole = Together(3, plan);
    ASSERT_TRUE(whole.ok()) << whole.error->text;
    Forget();
    for (const int workers : {0, 1, 2, 4}) {
      SCOPED_TRACE(Str("then ", workers));
      Plan stops = plan;
      stops.stop_at = whole.told / 3;
      ASSERT_EQ(Together(3, stops).code(), Code::kStopped);
      const BenchOutcome other = workers == 0 ? bench_.Run(plan) : Together(workers, plan);
      ASSERT_TRUE(other.ok()) << other.error->text;
      EXPECT_EQ(Parts().size(), static_cast<std::size_t>(workers));  // those of the three are gone
      Forget();
      EXPECT_EQ(other.report->rows, whole.report->rows);
      EXPECT_EQ(other.report->progressive.rows(), whole.report->progressive.rows());
      EXPECT_NEAR(other.report->progressive.loss(), whole.report->progressive.loss(), 1e-5);
      for (std::size_t b = 0; b < whole.weights.size(); ++b) {
        ASSERT_EQ(other.weights[b].size(), whole.weights[b].size());
        for (std::size_t i = 0; i < whole.weights[b].size(); ++i)
          ASSERT_NEAR(other.weights[b][i], whole.weights[b][i], 1e-4);
      }
    }
  }
  Plan alone = Sparse(100);  // and the other way round
  const BenchOutcome whole = bench_.Run(alone);
  Forget();
  alone.stop_at = whole.told / 2;
  ASSERT_EQ(bench_.Run(alone).code(), Code::kStopped);
  alone.stop_at = 0;
  const BenchOutcome two = Together(2, alone);
  ASSERT_TRUE(two.ok()) << two.error->text;
  for (std::size_t i = 0; i < whole.weights[0].size(); ++i) ASSERT_NEAR(two.weights[0][i], whole.weights[0][i], 1e-4);
}

TEST_F(TrainerWorkersTest, WhoHaveColumnsGoOnAsIfTheyHadNeverStopped) {
  for (const std::string kind : {"linear", "kmeans", "fm"}) {
    SCOPED_TRACE(kind);
    Plan plan = kind == "kmeans" ? Sea(60) : Sparse(60);
    if (kind == "kmeans" || kind == "fm") plan.model.kind = kind;
    if (kind == "kmeans") plan.model.loss = "squared";
    plan.model.factors = 3;
    plan.strategy.kind = "ring";
    plan.train.shuffle = kind != "linear";
    plan.train.hold_out.fraction = kind == "fm" ? 0.2 : 0;
    StopHereAndThere(3, plan, 2);
  }
}

// And each number of them makes the model that one makes alone.
TEST_F(TrainerWorkersTest, AnotherNumberGoesOnWithTheColumnsOfOthers) {
  for (const bool sparse : {false, true}) {
    SCOPED_TRACE(sparse ? "sparse" : "dense");
    Plan plan = sparse ? Sparse(100) : Sea(200);
    const BenchOutcome whole = bench_.Run(plan);
    ASSERT_TRUE(whole.ok()) << whole.error->text;
    Forget();
    plan.strategy.kind = "ring";
    for (const int workers : {0, 1, 2, 5}) {
      SCOPED_TRACE(Str("then ", workers));
      Plan stops = plan;
      stops.stop_at = whole.told / 3;
      ASSERT_EQ(Together(3, stops).code(), Code::kStopped);
      const BenchOutcome other = workers == 0 ? bench_.Run(plan) : Together(workers, plan);
      ASSERT_TRUE(other.ok()) << other.error->text;
      EXPECT_EQ(Parts().size(), static_cast<std::size_t>(workers));  // those of the three are gone
      Forget();
      EXPECT_EQ(other.report->rows, whole.report->rows);
      EXPECT_EQ(other.report->progressive.rows(), whole.report->progressive.rows());
      EXPECT_NEAR(other.report->progressive.loss(), whole.report->progressive.loss(), 1e-6);
      for (std::size_t b = 0; b < whole.weights.size(); ++b) {
        ASSERT_EQ(other.weights[b].size(), whole.weights[b].size());
        for (std::size_t i = 0; i < whole.weights[b].size(); ++i)
          ASSERT_NEAR(other.weights[b][i], whole.weights[b][i], 1e-5);
      }
    }
  }
}

TEST_F(TrainerWorkersTest, AnotherNumberTakesOverWhatACodecHeldBack) {
  for (const std::string codec : {"1bit", "topk"}) {
    Plan plan = Sea(400);
    plan.strategy.codec = codec;
    plan.strategy.top = 0.5;
    plan.train.epochs = 3;
    const BenchOutcome whole = Together(4, plan);
    ASSERT_TRUE(whole.ok()) << whole.error->text;
    Forget();
    for (const int workers : {1, 2, 3, 6}) {
      SCOPED_TRACE(Str(codec, ", then ", workers));
      Plan stops = plan;
      stops.stop_at = whole.told / 3;
      ASSERT_EQ(Together(4, stops).code(), Code::kStopped);
      const BenchOutcome other = Together(workers, plan);
      ASSERT_TRUE(other.ok()) << other.error->text;
      Forget();
      EXPECT_EQ(other.report->rows, whole.report->rows);
      EXPECT_NEAR(other.report->last_epoch.loss(), whole.report->last_epoch.loss(),
                  0.1 * whole.report->last_epoch.loss());
    }
  }
}

TEST_F(TrainerWorkersTest, AnotherNumberIsRefusedWhereWorkersHaveSomethingOfTheirOwn) {
  for (const std::string what : {"average", "bytes"}) {
    SCOPED_TRACE(what);
    Plan plan = Sparse(100);
    if (what == "average") plan.strategy.kind = "average";
    plan.strategy.whole = what != "bytes";
    plan.stop_at = 4;
    ASSERT_EQ(Together(3, plan).code(), Code::kStopped);
    const BenchOutcome other = Together(2, plan);
    ASSERT_FALSE(other.ok());
    EXPECT_EQ(other.code(), Code::kCorrupt);
    EXPECT_NE(other.error->text.find("written by 3 workers, now 2"), std::string::npos) << other.error->text;
    Forget();
  }
}

TEST_F(TrainerWorkersTest, TakeAwayWhatARunThatWasKilledLeftBehind) {
  Plan plan = Sea(200);
  plan.stop_at = 5;
  ASSERT_EQ(Together(2, plan).code(), Code::kStopped);
  const std::vector<std::string> parts = Parts();
  for (const char* const left : {"run.ckpt.rank0.save8", "run.ckpt.rank1.save8", "run.ckpt.rank5.save8",
                                 "run.ckpt.77.draft", "run.ckpt.rank1.save9.77.draft", "run.ckpt.rows.rank1.77.draft"})
    bench_.scratch.Write(left, "left");
  bench_.scratch.Write("run.ckpt2.rank0.save1", "another's");
  plan.stop_at = 1;
  ASSERT_EQ(Together(2, plan).code(), Code::kStopped);
  EXPECT_EQ(Parts().size(), 2u + 1);  // the two of now, and what is not ours
  for (const std::string& name : bench_.scratch.Names()) EXPECT_EQ(name.find("draft"), std::string::npos) << name;
  EXPECT_TRUE(bench_.files.Exists(bench_.scratch / "run.ckpt2.rank0.save1"));
}

TEST_F(TrainerWorkersTest, DataThatHasChangedIsNoticed) {
  Plan plan = Sea(200);
  plan.train.inputs = "sea.csv: 100 bytes, ends 1234\n";
  plan.stop_at = 3;
  ASSERT_EQ(bench_.Run(plan).code(), Code::kStopped);
  plan.stop_at = 0;
  plan.train.inputs = "sea.csv: 101 bytes, ends 1234\n";
  const BenchOutcome refused = bench_.Run(plan);
  ASSERT_FALSE(refused.ok());
  for (const char* part : {"the data has changed", "100 bytes", "now sea.csv: 101 bytes", "fresh"})
    EXPECT_NE(refused.error->text.find(part), std::string::npos) << refused.error->text;
  plan.train.inputs = "sea.csv: 100 bytes, ends 1234\n";
  EXPECT_TRUE(bench_.Run(plan).ok());
}

// Checkpoints of before saves were counted: who trains alone goes on, of workers the parts are not to be found.
TEST_F(TrainerWorkersTest, ACheckpointWithoutANumberIsOfUseToWhoTrainsAlone) {
  for (const int workers : {0, 2}) {
    SCOPED_TRACE(workers);
    Plan plan = Sea(200);
    const auto run = [&] { return workers == 0 ? bench_.Run(plan) : Together(workers, plan); };
    const BenchOutcome whole = run();
    Forget();
    plan.stop_at = 5;
    ASSERT_EQ(run().code(), Code::kStopped);
    plan.stop_at = 0;
    const auto saved = data::TensorFile::Read(bench_.files, plan.train.checkpoint_path);
    ASSERT_TRUE(saved.ok());
    data::Metadata metadata = saved.value().metadata();
    auto train = nlohmann::ordered_json::parse(metadata.at("train"));
    ASSERT_EQ(train.erase("save"), 1u);
    metadata["train"] = train.dump();
    ASSERT_TRUE(base::WriteAtomic(bench_.files, plan.train.checkpoint_path, [&](base::OutputFile& file) {
                  return data::WriteTensors(file, saved.value().tensors(), metadata);
                }).ok());
    const BenchOutcome resumed = run();
    if (workers == 0) {
      ExpectSame(resumed, whole);
    } else {
      ASSERT_FALSE(resumed.ok());
      EXPECT_NE(resumed.error->text.find("written by an earlier version"), std::string::npos) << resumed.error->text;
    }
    Forget();
  }
}

}  // namespace
}  // namespace freshet::train
