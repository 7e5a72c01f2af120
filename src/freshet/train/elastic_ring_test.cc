// Rings of members that each have a part of the model, and that come and go, in simulated worlds: all who end have the model
// that nothing would have disturbed.

#include "model/network/description.h"
#include "model/network/zoo.h"
#include "train/elastic_testing.h"

namespace freshet::train {
namespace {

using namespace std::chrono_literals;
using fabric::sim::Fault;
using Kind = Fault::Kind;

// What a ring is made of.
const std::vector<std::string> kModels = {"table", "linear", "fm", "kmeans", "network", "interleaved"};

class ElasticRings : public ElasticTraining {
 protected:
  ElasticRings() {
    plan_.strategy.kind = "ring";
    run_.size = 5;
  }

  // Trains that from now on, copies every so many steps.
  void Use(const std::string& model, std::uint64_t copy_every) {
    run_.copy_every = copy_every;
    run_.at = {};
    plan_.model = {};
    plan_.strategy.pipeline = "1f1b";
    plan_.strategy.micro = 0;
    plan_.optimizer.kind = model == "kmeans" || model == "network" ? "sgd" : "adagrad";
    plan_.optimizer.schedule = {"linear", model == "network" ? 0.02 : 0.1};
    plan_.path = bench_.Generate({.kind = "sea", .rows = 480}, "sea");
    if (model == "linear" || model == "fm") plan_.path = Sparse();
    if (model == "fm" || model == "kmeans") plan_.model.kind = model;
    if (model == "kmeans") plan_.model.loss = "squared";
    plan_.model.factors = 3;
    plan_.model.clusters = 7;
    if (model != "network" && model != "interleaved") return;
    plan_.model.kind = "network";
    plan_.model.network = ToToml(Network());
    plan_.strategy.micro = 2;
    if (model == "interleaved") plan_.strategy.pipeline = model;
    ComputeInSteps({});
  }
  // Layers of a network take no time of a simulated clock: steps do.
  void ComputeInSteps(std::function<void(World::Member& member, std::string_view place)> at) {
    run_.at = [at = std::move(at)](World::Member& member, std::string_view place) {
      if (place == "step.begin") member.Compute(1ms);
      if (at) at(member, place);
    };
  }
  static model::network::Graph Network() {
    model::network::Graph graph({3});
    int at = 0;
    for (int layer = 0; layer < 6; ++layer) at = graph.Relu(graph.Dense(at, 6 + layer, Str("dense", layer)));
    at = graph.Dropout(at, 0.2);
    graph.AddHead(graph.Dense(at, 1, "scores"));
    return graph;
  }
  // Features go on appearing.
  std::string Sparse() {
    base::Random random(5, "rows");
    std::string text;
    for (std::uint64_t row = 0; row < 480; ++row) {
      const bool good = random.Below(2) == 0;
      text += good ? "+1" : "-1";
      for (std::uint64_t j = 1; j <= 40 + row; j += 3 + random.Below(20))
        text += Str(" ", j + (good ? 0 : j % 3), ":1");
      text += "\n";
    }
    return bench_.scratch.Write("sparse", text);
  }
  std::vector<Ended> TrainBy(const std::string& faults) {
    run_.faults = fabric::sim::ParseFaults(faults, run_.size).value();
    auto ends = Train(run_);
    Forget();
    return ends;
  }
  // How many ended; those who did have the same model, and that of the undisturbed.
  std::size_t Check(const std::vector<Ended>& ends, const Ended& calm) {
    const Ended* one = nullptr;
    std::size_t ended = 0;
    for (const Ended& end : ends) {
      if (!end.ran) continue;
      if (!end.outcome.ok()) {
        EXPECT_TRUE(LeftOut(end)) << end.outcome.error->text;
        continue;
      }
      ++ended;
      if (one == nullptr) one = &end;
      EXPECT_EQ(end.outcome.weights, one->outcome.weights);
      EXPECT_EQ(end.outcome.report->rows, calm.outcome.report->rows);  // each counted once
      EXPECT_LE(end.outcome.report->progressive.rows(), 480u);
      EXPECT_LT(Distance(end.outcome, calm.outcome), 1e-5);
    }
    return ended;
  }

  Run run_;
};

// And nothing is sent more, but for the copies.
TEST_F(ElasticRings, WhenNobodyGoesTheyAreAsThoseThatMustNotLoseAny) {
  for (const std::string& model : kModels) {
    SCOPED_TRACE(model);
    Use(model, 4);
    run_.heartbeat = 10s;
    run_.plain = true;
    const auto plain = TrainBy("");
    run_.plain = false;
    const auto elastic = TrainBy("");
    for (std::size_t rank = 0; rank < elastic.size(); ++rank) {
      ASSERT_TRUE(plain[rank].outcome.ok()) << plain[rank].outcome.error->text;
      ASSERT_TRUE(elastic[rank].outcome.ok()) << elastic[rank].outcome.error->text;
      EXPECT_EQ(elastic[rank].outcome.weights, plain[rank].outcome.weights);
      EXPECT_EQ(elastic[rank].times.bytes_next, plain[rank].times.bytes_next);
      EXPECT_EQ(elastic[rank].times.bytes_back, plain[rank].times.bytes_back);
      EXPECT_EQ(plain[rank].times.bytes_copied, 0u);
      EXPECT_GT(elastic[rank].times.bytes_copied, 0u);
    }
  }
}

TEST_F(ElasticRings, WhoeverIsKilledWheneverTheOthersEndWithTheSameModel) {
  for (const std::string& model : kModels)
    for (const std::uint64_t every : {1, 5}) {
      Use(model, every);
      const auto calm = TrainBy("");
      ASSERT_TRUE(calm[0].outcome.ok()) << calm[0].outcome.error->text;
      for (int at = 5; at < 100; at += 13)
        for (const int rank : {0, 2, 4}) {
          const std::string fault = Str("crash rank=", rank, " at=", at, "ms");
          SCOPED_TRACE(Str(model, ", copies every ", every, ", ", fault));
          EXPECT_EQ(Check(TrainBy(fault), calm[0]), 4u);
          if (HasFailure()) return;
        }
    }
}

TEST_F(ElasticRings, WhoComesBackIsGivenItsPart) {
  for (const std::string& model : kModels) {
    Use(model, 3);
    const auto calm = TrainBy("");
    for (const char* const faults :
         {"crash rank=1 at=20ms for=10ms", "crash rank=0 at=35ms for=5ms",
          "crash rank=3 at=20ms for=10ms; crash rank=0 at=60ms for=5ms; pause rank=1 at=80ms for=60ms"}) {
      SCOPED_TRACE(Str(model, ", ", faults));
      const auto ends = TrainBy(faults);
      EXPECT_GE(Check(ends, calm[0]), 4u);
      EXPECT_TRUE(std::any_of(ends.begin(), ends.end(), [](const Ended& end) { return end.came; }));
      if (HasFailure()) return;
    }
  }
}

// Their copies are with each other: after the first point there is nothing left to go on from.
TEST_F(ElasticRings, TwoNeighboursLostAtOnceEndTheOthersWithAClearLineAndTheCheckpointGoesOn) {
  for (const std::string model : {"linear", "network"}) {
    SCOPED_TRACE(model);
    Use(model, 1);
    const auto calm = TrainBy("");
    plan_.train.checkpoint_seconds = 0.03;
    run_.faults = fabric::sim::ParseFaults("crash rank=1 at=50ms; crash rank=2 at=50ms", run_.size).value();
    const auto ends = Train(run_);
    for (const std::size_t rank : {0, 3, 4}) {
      ASSERT_TRUE(ends[rank].ran && !ends[rank].outcome.ok());
      EXPECT_EQ(ends[rank].outcome.code(), Code::kPeerLost);
      EXPECT_NE(ends[rank].outcome.error->text.find("a part of the model is lost with both who had it"),
                std::string::npos)
          << ends[rank].outcome.error->text;
    }
    run_.size = 3;
    const auto resumed = TrainBy("");
    run_.size = 5;
    EXPECT_EQ(Check(resumed, calm[0]), 3u);
    EXPECT_LT(resumed[0].at, calm[0].at);  // it did not begin anew
  }
}

// Too few are left, and another comes: those who were there make the steps since again, and it is given what came of that.
TEST_F(ElasticRings, TooFewLetOthersInInTheMidstOfAStep) {
  plan_.train.checkpoint_seconds = 1000;  // nobody is let in in the midst of one
  for (const std::string& model : kModels) {
    SCOPED_TRACE(model);
    Use(model, 5);
    const auto calm = TrainBy("");
    run_.least = 4;
    run_.wait = 1s;
    for (int at = 40; at < 60; at += 9) {
      SCOPED_TRACE(at);
      const auto ends = TrainBy(Str("crash rank=1 at=", at, "ms for=30ms; crash rank=3 at=", at, "ms"));
      EXPECT_EQ(Check(ends, calm[0]), 4u);
      EXPECT_TRUE(ends[1].came);
      if (HasFailure()) return;
    }
    run_.least = 1;
  }
}

// Two that are no neighbours, or as long as all have the whole.
TEST_F(ElasticRings, ManyLostAtOnceAreDoneWithoutWhereEveryPartIsLeft) {
  for (const std::string& model : kModels) {
    SCOPED_TRACE(model);
    Use(model, 4);
    const auto calm = TrainBy("");
    EXPECT_EQ(Check(TrainBy("crash rank=1 at=50ms; crash rank=3 at=50ms"), calm[0]), 3u);
    Use(model, 1000);
    plan_.train.checkpoint_seconds = 1000;
    EXPECT_EQ(Check(TrainBy("crash rank=1 at=50ms; crash rank=2 at=50ms; crash rank=3 at=50ms"), calm[0]), 2u);
    plan_.train.checkpoint_seconds = 0.02;
  }
}

// Worlds of 3 to 8 members and up to three faults, some of them while members recover from another. Who ends has the model
// that nothing disturbed, within ten seconds after the last fault; who does not says which parts are lost.
TEST_F(ElasticRings, WhateverHappensThoseWhoGoOnHaveLearnedTheSame) {
  std::map<std::string, Ended> calm;
  plan_.train.batch = 16;
  for (const std::string& model : kModels) {
    Use(model, 4);
    calm[model] = TrainBy("")[0];
    ASSERT_TRUE(calm[model].outcome.ok()) << calm[model].outcome.error->text;
  }
  const std::uint64_t first = NumberIn("FRESHET_SEED", 1);
  const std::uint64_t seeds = NumberIn("FRESHET_SEEDS", std::getenv("FRESHET_SEED") != nullptr ? 1 : 200);
  std::uint64_t finished = 0, changed = 0, came = 0, lost = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    base::Random random(seed, "elastic ring");
    const std::string& model = kModels[seed % kModels.size()];
    Use(model, 1 + random.Below(8));
    run_.size = 3 + static_cast<int>(random.Below(model == "interleaved" ? 4 : 6));
    run_.seed = seed;
    const Drawn drawn = DrawFaults(seed, seed % 3 + 1, run_.size, calm[model].at, 40ms, random);
    SCOPED_TRACE(Str("seed ", seed, ", ", model, ", ", run_.size, " members, copies every ", run_.copy_every, ", ",
                     drawn.text, "to see it again: FRESHET_SEED=", seed,
                     " train_test --gtest_filter='ElasticRings.Whatever*'"));
    run_.faults = drawn.faults;
    const auto ends = Train(run_);
    Forget();
    bool some = false;
    for (const Ended& end : ends) {
      if (!end.ran) continue;
      EXPECT_LE(end.at, drawn.quiet + 10s);
      changed += end.losses > 0 ? 1 : 0;
      came += end.came && end.outcome.ok() ? 1 : 0;
      some = some || (!end.outcome.ok() && end.outcome.error->text.starts_with("a part of the model is lost"));
    }
    lost += some ? 1 : 0;
    finished += Check(ends, calm[model]) > 0 ? 1 : 0;
    if (HasFailure()) return;
  }
  ShowFaults(finished, seeds);
  std::printf("two neighbours lost at once in %llu\n", static_cast<unsigned long long>(lost));
  if (seeds >= 100) {
    EXPECT_GT(finished, seeds * 6 / 10);
    EXPECT_GT(changed, seeds / 2);
    EXPECT_GT(came, seeds / 10);
    EXPECT_GT(lost, 0u);
  }
}

}  // namespace
}  // namespace freshet::train
