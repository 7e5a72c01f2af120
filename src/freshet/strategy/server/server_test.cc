// Workers of a parameter server: what they make is what one worker makes, or all-reduce, as far as the synchrony promises.

#include <gtest/gtest.h>

#include <thread>

#include "base/option.h"
#include "strategy/server/synchrony.h"
#include "strategy/worlds_testing.h"

namespace freshet::strategy {
namespace {

StrategyOptions By(const std::string& synchrony, int servers = 0) {
  StrategyOptions options;
  options.kind = "server";
  options.synchrony = synchrony;
  options.servers = servers;
  options.batch = 24;
  return options;
}

class ServerOf : public testing::TestWithParam<std::string> {};

TEST_P(ServerOf, BulkWorkersAreOneWorkerOfTheWholeBatch) {
  const Task task = MakeTask(GetParam(), 400, 3);
  for (const int members : {1, 2, 3, 4})
    for (const int servers : {0, 1, 2}) {
      if (servers >= members) continue;
      SCOPED_TRACE(Str(members, " members, ", servers, " servers"));
      StrategyOptions all;
      all.batch = 24;
      const Trained reduced = Train(task, members - servers, all, 1);
      const Trained served = Train(task, members, By("bsp", servers), 1);
      for (const auto& weights : served.weights) EXPECT_EQ(weights, served.weights[0]);
      EXPECT_LT(Distance(reduced.weights[0], served.weights[0]), 1e-6);
      const Trained many = Train(task, members - servers, all, 30), more = Train(task, members, By("bsp", servers), 30);
      EXPECT_LT(Distance(many.weights[0], more.weights[0]), 1e-3);
      EXPECT_NEAR(many.loss, more.loss, 1e-3 * std::abs(many.loss) + 1e-6);
      if (members - servers == 2) EXPECT_EQ(many.weights[0], more.weights[0]);  // two gradients have one sum
    }
}

TEST_P(ServerOf, TheSameBulkRunTwiceGivesTheSameBytes) {
  const Task task = MakeTask(GetParam(), 400, 4);
  const Trained once = Train(task, 3, By("bsp"), 25), twice = Train(task, 3, By("bsp"), 25);
  EXPECT_EQ(once.weights, twice.weights);
}

TEST_P(ServerOf, WhatIsStaleByNothingIsBulk) {
  const Task task = MakeTask(GetParam(), 400, 5);
  EXPECT_EQ(Train(task, 3, By("ssp:0"), 25).weights, Train(task, 3, By("bsp"), 25).weights);
}

TEST_P(ServerOf, EverySynchronyLearns) {
  const Task task = MakeTask(GetParam(), 600, 6);
  StrategyOptions all;
  all.batch = 24;
  const Trained reduced = Train(task, 3, all, 120);
  for (const char* const synchrony : {"ssp:1", "ssp:4", "asp:0.01", "bap"})
    for (const int servers : {0, 1}) {
      SCOPED_TRACE(Str(synchrony, " ", servers));
      const Trained served = Train(task, 3 + servers, By(synchrony, servers), 120);
      for (const auto& weights : served.weights) EXPECT_EQ(weights, served.weights[0]);
      EXPECT_LT(served.loss, 1.1 * reduced.loss);
    }
}

constexpr const char* kCodecs[] = {"fp16", "bf16", "int8", "1bit", "topk", "threshold"};

StrategyOptions Encoded(const std::string& synchrony, const std::string& codec) {
  StrategyOptions options = By(synchrony);
  options.codec = codec;
  options.top = codec == "threshold" ? 0.05 : 0.1;
  return options;
}

TEST(Server, CodecsLearnInEverySynchronyWhatPlainFloatsLearn) {
  for (const std::string name : {"linear", "perceptron"}) {
    const Task task = MakeTask(name, 600, 4);
    for (const std::string synchrony : {"bsp", "ssp:2", "asp:0.01", "bap"}) {
      const double plain = Train(task, 3, By(synchrony), 400).loss;
      for (const std::string codec : kCodecs)
        EXPECT_NEAR(Train(task, 3, Encoded(synchrony, codec), 400).loss / plain, 1, synchrony == "bsp" ? 0.05 : 0.1)
            << name << " " << synchrony << " " << codec;
    }
  }
}

TEST(Server, GradientsThatArePushedTogetherAreEncodedTogether) {
  const Task task = MakeTask("perceptron", 600, 4);
  StrategyOptions options = By("bap");
  options.push_every = 4;
  const double plain = Train(task, 3, options, 400).loss;
  for (const std::string codec : kCodecs) {
    StrategyOptions encoded = Encoded("bap", codec);
    encoded.push_every = 4;
    EXPECT_NEAR(Train(task, 3, encoded, 400).loss / plain, 1, 0.1) << codec;
  }
}

TEST(Server, TheSameBulkRunTwiceGivesTheSameBytesWithACodecToo) {
  for (const std::string name : {"linear", "perceptron"})
    for (const std::string codec : kCodecs) {
      const Task task = MakeTask(name, 400, 4);
      const Trained once = Train(task, 3, Encoded("bsp", codec), 25);
      EXPECT_EQ(once.weights, Train(task, 3, Encoded("bsp", codec), 25).weights) << name << " " << codec;
      EXPECT_NE(once.weights, Train(task, 3, By("bsp"), 25).weights) << name << " " << codec;
    }
}

TEST(Server, UpdatesOfAWarmStartTravelAsTheyAre) {
  const Task task = MakeTask("perceptron", 400, 4);
  StrategyOptions options = Encoded("bsp", "1bit");
  options.warm_start = 25;
  EXPECT_EQ(Train(task, 3, options, 25).weights, Train(task, 3, By("bsp"), 25).weights);
  EXPECT_NE(Train(task, 3, options, 26).weights, Train(task, 3, By("bsp"), 26).weights);
}

// What goes to a server is shorter, and what comes back is not.
TEST(Server, WhatIsPushedTakesFewerBytes) {
  const Task task = NetworkTask(model::network::MakeZoo("mlp", {200}, 3, {.hidden = 100}).value(), 60, 4);
  const auto bytes = [&](const StrategyOptions& options) {
    StepTimes times;
    fabric::RunMembers(2, [&](fabric::Fabric& fabric) {  // a worker and a server
      TestLearner learner(task);
      fabric::Collectives collectives(fabric);
      const auto strategy = Strategy::Make(options, learner.World(collectives)).value();
      std::vector<float> scores(24 * learner.model->scores());
      const data::Batch piece = task.rows.batch().Slice(0, 24);
      for (int step = 0; step < 10 && strategy->has_rows(); ++step)
        ASSERT_TRUE(strategy->Step(piece, strategy->Share(piece), scores).ok());
      if (strategy->has_rows()) times = strategy->times();
      ASSERT_TRUE(strategy->EndEpoch().ok());
    });
    return times;
  };
  StrategyOptions plain = By("bsp", 1);
  const auto all = static_cast<double>(bytes(plain).bytes_sent);
  const std::pair<const char*, double> shares[] = {
      {"fp16", 0.5}, {"bf16", 0.5}, {"int8", 8.06 / 32}, {"1bit", 1.06 / 32}, {"topk", 26 * 0.1 / 32}};
  for (const auto& [codec, share] : shares) {
    StrategyOptions options = Encoded("bsp", codec);
    options.servers = 1;
    const StepTimes times = bytes(options);
    EXPECT_NEAR(static_cast<double>(times.bytes_sent) / all, share, 0.02) << codec;
    EXPECT_NEAR(static_cast<double>(times.bytes_dense) / all, 1, 0.001) << codec;
  }
}

TEST(Server, ItsMembersTellWhatWentToAndFro) {
  const Task task = MakeTask("perceptron", 400, 4);
  for (const int servers : {0, 2}) {
    SCOPED_TRACE(servers);
    std::vector<server::Report> reports(4);
    fabric::RunMembers(4, [&](fabric::Fabric& fabric) {
      TestLearner learner(task);
      fabric::Collectives collectives(fabric);
      const auto strategy = Strategy::Make(By("bsp", servers), learner.World(collectives)).value();
      std::vector<float> scores(24 * learner.model->scores());
      const data::Batch piece = task.rows.batch().Slice(0, 24);
      for (int step = 0; step < 10 && strategy->has_rows(); ++step)
        ASSERT_TRUE(strategy->Step(piece, strategy->Share(piece), scores).ok());
      ASSERT_TRUE(strategy->EndEpoch().ok());
      reports[static_cast<std::size_t>(fabric.rank())] = strategy->report().value();
    });
    TestLearner learner(task);
    const std::uint64_t workers = servers == 0 ? 4 : 2;
    for (std::size_t b = 0; b < learner.parameters->blocks(); ++b) {
      const std::uint64_t bytes = learner.parameters->rows(b) * learner.parameters->width(b) * sizeof(float);
      std::uint64_t pulled = 0, pushed = 0, held = 0;
      for (const server::Report& report : reports) {
        if (report.blocks.empty()) continue;
        pulled += report.blocks[b].pulled;
        pushed += report.blocks[b].pushed;
        held += report.blocks[b].held;
        EXPECT_EQ(report.blocks[b].name, learner.parameters->block(b).name);
      }
      EXPECT_EQ(held, learner.parameters->rows(b));
      EXPECT_EQ(pushed, 10 * workers * bytes);
      EXPECT_EQ(pulled, 10 * workers * bytes);  // what is needed for the first step all have
    }
    for (std::size_t rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(reports[rank].blocks.empty(), servers == 2 && rank < 2);
      EXPECT_EQ(reports[rank].updates, reports[rank].blocks.empty() ? 0u : 10u);
    }
  }
}

TEST(Server, RefusesWhatIsMadeForSums) {
  const Task task = MakeTask("perceptron", 40, 1);
  fabric::RunMembers(2, [&](fabric::Fabric& fabric) {
    TestLearner learner(task);
    fabric::Collectives collectives(fabric);
    const auto refused = [&](const auto& change) {
      StrategyOptions options = By("bsp");
      change(options);
      const auto made = Strategy::Make(options, learner.World(collectives));
      return made.ok() ? "" : ShowOptions(made.error().text);
    };
    EXPECT_EQ(refused([](StrategyOptions& o) { o.codec = "power"; }),
              "strategy server does not go with codec power, which is a way to make a sum");
    EXPECT_EQ(refused([](StrategyOptions& o) { o.factors = true; }), "strategy server does not go with layer-factors");
    EXPECT_NE(refused([](StrategyOptions& o) { o.codec = "zip"; }), "");
  });
}

TEST(Server, OneMemberIsItsOwnServer) {
  const Task task = MakeTask("linear", 400, 7);
  StrategyOptions all;
  all.batch = 24;
  const Trained alone = Train(task, 1, all, 60);
  for (const char* const synchrony : {"bsp", "ssp:2", "asp:0", "bap"})
    EXPECT_LT(Train(task, 1, By(synchrony), 60).loss, 1.001 * alone.loss) << synchrony;
}

TEST(Server, OneMemberAloneIsNoServerWithoutAWorker) {
  const Task task = MakeTask("linear", 40, 1);
  fabric::RunMembers(1, [&](fabric::Fabric& fabric) {
    TestLearner learner(task);
    fabric::Collectives collectives(fabric);
    const auto made = Strategy::Make(By("bsp", 1), learner.World(collectives));
    ASSERT_FALSE(made.ok());
    EXPECT_NE(made.error().text.find("leave no worker"), std::string::npos) << made.error().text;
  });
}

INSTANTIATE_TEST_SUITE_P(Tasks, ServerOf,
                         testing::Values("linear", "table", "fm", "factorization", "kmeans", "perceptron",
                                         "convolution"));

}  // namespace
}  // namespace freshet::strategy
