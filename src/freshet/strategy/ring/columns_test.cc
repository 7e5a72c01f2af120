// Columns spread over a ring: what members make together is what one makes alone.

#include "strategy/ring/columns.h"

#include <gtest/gtest.h>

#include "base/option.h"
#include "fabric/sim/world.h"
#include "fabric/tcp/tcp_testing.h"
#include "strategy/alone.h"
#include "strategy/ring/columns_testing.h"
#include "strategy/watched_testing.h"

namespace freshet::strategy::ring {
namespace {

constexpr std::uint64_t kBatch = 24;

StrategyOptions Options(std::uint64_t batch = kBatch) {
  StrategyOptions options;
  options.kind = "ring";
  options.batch = batch;
  return options;
}

// By one without others.
TrainedMember TrainAlone(const Task& task, std::size_t steps, std::uint64_t batch = kBatch) {
  TrainedMember trained;
  TestLearner learner(task);
  const Learner lent{*learner.model, *learner.parameters, *learner.optimizer, learner.memory, learner.clock};
  const auto alone = Alone::Make({.batch = batch}, lent).value();
  const data::Batch all = task.rows.batch();
  std::vector<float> scores(batch * learner.model->scores());
  for (std::size_t step = 0; step < steps; ++step) {
    const std::size_t begin = step * batch % (all.rows - batch + 1);
    const data::Batch piece = all.Slice(begin, begin + batch);
    alone->SetProgress(static_cast<double>(step) / static_cast<double>(steps));
    trained.loss += alone->Step(piece, piece, scores).value().value();
  }
  trained.weights = learner.Weights();
  return trained;
}

class ColumnsOf : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, ColumnsOf,
                         testing::Values("linear_logistic", "linear_hinge", "linear_squared", "linear_softmax",
                                         "dense_logistic", "dense_hinge", "dense_squared", "dense_softmax",
                                         "fm_logistic", "fm_hinge", "fm_squared", "kmeans"),
                         [](const auto& chosen) { return std::string(chosen.param); });

TEST_P(ColumnsOf, AnyNumberOfMembersIsOneMemberWhateverTheRule) {
  constexpr std::size_t kSteps = 8;
  Task task = MakeColumnTask(GetParam(), 200, 1);
  for (const std::string& rule : optimize::Optimizer::Kinds()) {
    task.optimizer.kind = rule;
    // Divisions by the size of gradients magnify the roundings of those that nearly cancel, as factors' do.
    const bool magnifies = task.config.kind == "fm" && (rule == "adagrad" || rule == "adam" || rule == "adaptive");
    const TrainedMember alone = TrainAlone(task, kSteps);
    const bool all = rule == "adaptive" || rule == "adagrad";
    for (const int members : all ? std::vector{1, 2, 3, 4, 5, 6, 7, 8} : std::vector{3}) {
      SCOPED_TRACE(Str(rule, ", ", members, " members"));
      const Trained together = Train(task, members, Options(), kSteps);
      for (const auto& weights : together.weights) EXPECT_EQ(weights, together.weights[0]);
      EXPECT_LE(Distance(alone.weights, together.weights[0]), magnifies ? 1e-5 : 1e-6);
      EXPECT_NEAR(alone.loss, together.loss, 1e-6 * std::abs(alone.loss));
      if (task.config.kind == "kmeans") {
        EXPECT_EQ(alone.weights, together.weights[0]);  // nothing is summed up on the way
      }
    }
  }
}

TEST_P(ColumnsOf, WithPenaltiesAndASlowerRateItIsTheSameToo) {
  Task task = MakeColumnTask(GetParam(), 200, 2);
  task.optimizer.l1 = 1e-3;
  task.optimizer.l2 = 1e-2;
  task.optimizer.schedule.kind = "linear";
  EXPECT_LE(Distance(TrainAlone(task, 10).weights, Train(task, 3, Options(), 10).weights[0]), 1e-6);
}

TEST_P(ColumnsOf, TheSameRunTwiceGivesTheSameBytes) {
  const Task task = MakeColumnTask(GetParam(), 200, 3);
  EXPECT_EQ(Train(task, 4, Options(), 8).weights, Train(task, 4, Options(), 8).weights);
}

TEST_P(ColumnsOf, SimulatedWorldsMakeTheSameBytesInAnyOrderOfEvents) {
  const Task task = MakeColumnTask(GetParam(), 200, 4);
  const auto threads = Train(task, 3, Options(), 10).weights;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    fabric::sim::World world({.size = 3, .seed = seed});
    std::vector<std::vector<float>> weights(3);
    world.Run([&](fabric::sim::World::Member& member) {
      const auto fabric = member.Connect();
      weights[static_cast<std::size_t>(member.rank())] = TrainAs(*fabric, task, Options(), 10).weights;
    });
    EXPECT_EQ(weights, threads) << "seed " << seed;
  }
}

TEST_P(ColumnsOf, OverSocketsTheyMakeTheSameBytes) {
  const Task task = MakeColumnTask(GetParam(), 200, 4);
  base::SystemClock clock;
  fabric::Members members = fabric::ConnectAll(3, clock);
  std::vector<std::vector<float>> weights(3);
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < 3; ++rank)
      threads.emplace_back([&, rank] {
        ASSERT_TRUE(members[rank].ok()) << members[rank].error().text;
        weights[rank] = TrainAs(*members[rank].value(), task, Options(), 10).weights;
      });
  }
  EXPECT_EQ(weights, Train(task, 3, Options(), 10).weights);
}

// A step sends b rows of s numbers twice round, and nothing that depends on the size of the model.
TEST_P(ColumnsOf, AStepSendsItsPartialsTwiceRoundAndNothingElse) {
  constexpr std::size_t kSteps = 5;
  const Task task = MakeColumnTask(GetParam(), 200, 5);
  const std::uint64_t s = model::Model::Make(task.config).value()->partials()->width();
  for (const int members : {1, 2, 3, 4, 8}) {
    SCOPED_TRACE(Str(members, " members"));
    const auto n = static_cast<std::uint64_t>(members);
    std::vector<StepTimes> times(n);
    fabric::RunMembers(members, [&](fabric::Fabric& fabric) {
      times[static_cast<std::size_t>(fabric.rank())] = TrainAs(fabric, task, Options(), kSteps).times;
    });
    for (const StepTimes& each : times) {
      // Each sends n - 1 of n parts in each lap; b is a multiple of n.
      const std::uint64_t floats = kSteps * 2 * (n - 1) * (kBatch / n) * s;
      EXPECT_EQ(each.bytes_next, floats * sizeof(float));
      EXPECT_EQ(each.bytes_back, 0u);
      EXPECT_EQ(each.bytes_sent, floats * sizeof(float) + kSteps * 2 * (n - 1) * PartialLaps::HeadBytes());
      EXPECT_LE(each.bytes_next, kSteps * 2 * kBatch * s * sizeof(float));
      EXPECT_EQ(each.rows, kSteps * kBatch / n);
      EXPECT_EQ(each.steps, kSteps);
    }
  }
}

TEST_P(ColumnsOf, PiecesOfAnyLengthAreLearnedFromByAll) {
  const Task task = MakeColumnTask(GetParam(), 100, 6);
  std::vector<std::vector<float>> weights(4);
  fabric::RunMembers(4, [&](fabric::Fabric& fabric) {
    TestLearner learner(task);
    fabric::Collectives collectives(fabric);
    const auto strategy = Strategy::Make(Options(), learner.World(collectives)).value();
    std::vector<float> scores(100 * learner.model->scores());
    std::size_t begin = 0;
    for (const std::size_t rows : {24, 1, 3, 5, 24, 2}) {  // fewer than members, too
      const data::Batch piece = task.rows.batch().Slice(begin, begin + rows), mine = strategy->Share(piece);
      ASSERT_TRUE(strategy->Step(piece, mine, std::span(scores).first(mine.rows * learner.model->scores())).ok());
      begin += rows;
    }
    ASSERT_TRUE(strategy->EndEpoch().ok());
    weights[static_cast<std::size_t>(fabric.rank())] = learner.Weights();
  });
  TestLearner learner(task);
  const Learner lent{*learner.model, *learner.parameters, *learner.optimizer, learner.memory, learner.clock};
  const auto alone = Alone::Make({.batch = kBatch}, lent).value();
  std::vector<float> scores(100 * learner.model->scores());
  std::size_t begin = 0;
  for (const std::size_t rows : {24, 1, 3, 5, 24, 2}) {
    const data::Batch piece = task.rows.batch().Slice(begin, begin + rows);
    ASSERT_TRUE(alone->Step(piece, piece, scores).ok());
    begin += rows;
  }
  for (const auto& each : weights) EXPECT_EQ(each, weights[0]);
  EXPECT_LE(Distance(learner.Weights(), weights[0]), 1e-6);
}

// Whenever they have settled, the trainer's parameters and what its optimizer remembers are all there is.
TEST_P(ColumnsOf, OthersCanGoOnFromWhatTheySettled) {
  Task task = MakeColumnTask(GetParam(), 200, 7);
  task.optimizer.kind = "adam";
  const auto straight = Train(task, 3, Options(), 16).weights[0];
  const auto run = [&](fabric::Fabric& fabric, TestLearner& learner, std::size_t first, std::size_t last) {
    fabric::Collectives collectives(fabric);
    const auto strategy = Strategy::Make(Options(), learner.World(collectives)).value();
    std::vector<float> scores(kBatch * learner.model->scores());
    for (std::size_t step = first; step < last; ++step) {
      const std::size_t begin = step * kBatch % (200 - kBatch + 1);
      const data::Batch piece = task.rows.batch().Slice(begin, begin + kBatch), mine = strategy->Share(piece);
      strategy->SetProgress(static_cast<double>(step) / 16);
      ASSERT_TRUE(strategy->Step(piece, mine, std::span(scores).first(mine.rows * learner.model->scores())).ok());
      if (step != last - 3) continue;
      ASSERT_TRUE(strategy->Settle().ok());  // in the midst, and they go on
    }
    ASSERT_TRUE(strategy->Settle().ok());
  };
  TestLearner half(task);
  fabric::RunMembers(3, [&](fabric::Fabric& fabric) {
    TestLearner learner(task);
    run(fabric, fabric.rank() == 1 ? half : learner, 0, 8);
  });
  for (const int members : {1, 3, 5}) {
    SCOPED_TRACE(Str("then ", members));
    std::vector<std::vector<float>> weights(static_cast<std::size_t>(members));
    fabric::RunMembers(members, [&](fabric::Fabric& fabric) {
      TestLearner learner(task);
      learner.parameters->CopyFrom(*half.parameters);
      learner.optimizer->state().CopyFrom(half.optimizer->state());
      learner.optimizer->SetStep(half.optimizer->step());
      run(fabric, learner, 8, 16);
      weights[static_cast<std::size_t>(fabric.rank())] = learner.Weights();
    });
    for (const auto& each : weights) EXPECT_EQ(each, weights[0]);
    if (members == 3) {
      EXPECT_EQ(weights[0], straight);
    }
    EXPECT_LE(Distance(weights[0], straight), task.config.kind == "fm" ? 1e-4 : 1e-5);
  }
}

TEST(Columns, WhatOneAsksAllAgreeOnWithTheSameStepAndAStopChangesNothing) {
  const Task task = MakeColumnTask("linear_logistic", 100, 8);
  fabric::RunMembers(3, [&](fabric::Fabric& fabric) {
    TestLearner learner(task);
    fabric::Collectives collectives(fabric);
    const auto strategy = Strategy::Make(Options(), learner.World(collectives)).value();
    const data::Batch piece = task.rows.batch().Slice(0, kBatch), mine = strategy->Share(piece);
    std::vector<float> scores(mine.rows);
    strategy->Ask(false, fabric.rank() == 0);
    ASSERT_TRUE(strategy->Step(piece, mine, scores).value().has_value());
    EXPECT_TRUE(strategy->save_agreed());
    EXPECT_FALSE(strategy->stop_agreed());
    ASSERT_TRUE(strategy->Settle().ok());
    const std::vector<float> before = learner.Weights();
    strategy->Ask(fabric.rank() == 2, false);
    EXPECT_FALSE(strategy->Step(piece, mine, scores).value().has_value());
    EXPECT_TRUE(strategy->stop_agreed());
    EXPECT_FALSE(strategy->save_agreed());
    ASSERT_TRUE(strategy->Settle().ok());
    EXPECT_EQ(learner.Weights(), before);
    EXPECT_EQ(learner.optimizer->step(), 1u);
    strategy->Forget();
    EXPECT_FALSE(strategy->stop_agreed());
    EXPECT_EQ(strategy->Sum({1.0, static_cast<double>(fabric.rank())}).value(), (std::vector<double>{3, 3}));
  });
}

TEST(Columns, FeaturesThatAreMetLaterFindTheirPlace) {
  const Task task = MakeColumnTask("fm_logistic", 200, 9);
  const Trained known = Train(task, 3, Options(), 8);
  std::vector<std::vector<float>> weights(3);
  fabric::RunMembers(3, [&](fabric::Fabric& fabric) {
    optimize::HeapMemory memory;
    const base::SystemClock clock;
    const auto model = model::Model::Make(task.config).value();
    const auto optimizer = optimize::Optimizer::Make(task.optimizer, memory).value();
    auto parameters = model->NewParameters(memory).value();
    fabric::Collectives collectives(fabric);
    const auto strategy =
        Strategy::Make(Options(), {collectives, *model, parameters, *optimizer, memory, clock}).value();
    std::vector<float> scores(kBatch);
    for (std::size_t step = 0; step < 8; ++step) {
      const std::size_t begin = step * kBatch % (200 - kBatch + 1);
      const data::Batch piece = task.rows.batch().Slice(begin, begin + kBatch), mine = strategy->Share(piece);
      ASSERT_TRUE(model->Prepare(parameters, piece).ok());
      ASSERT_TRUE(optimizer->Follow(parameters).ok());
      ASSERT_TRUE(strategy->Step(piece, mine, scores).ok());
    }
    ASSERT_TRUE(model->Prepare(parameters, task.rows.batch()).ok());  // rows that are held out, say
    ASSERT_TRUE(optimizer->Follow(parameters).ok());
    ASSERT_TRUE(strategy->EndEpoch().ok());
    auto& all = weights[static_cast<std::size_t>(fabric.rank())];
    for (std::size_t b = 0; b < parameters.blocks(); ++b) {
      const auto values = parameters.Values(b);
      all.insert(all.end(), values.begin(), values.end());
    }
  });
  for (const auto& each : weights) EXPECT_EQ(each, known.weights[0]);
}

TEST(Columns, OneThatGivesUpEndsTheOthersWithItsReason) {
  const Task task = MakeColumnTask("dense_logistic", 100, 10);
  fabric::RunMembers(3, [&](fabric::Fabric& fabric) {
    TestLearner learner(task);
    fabric::Collectives collectives(fabric);
    const auto strategy = Strategy::Make(Options(), learner.World(collectives)).value();
    const data::Batch piece = task.rows.batch().Slice(0, kBatch), mine = strategy->Share(piece);
    std::vector<float> scores(mine.rows);
    auto ended = strategy->Step(piece, mine, scores);
    if (fabric.rank() == 1) return fabric.Abort({Code::kBadInput, "a.csv:3: found x"});
    if (ended.ok()) ended = strategy->Step(piece, mine, scores);  // else it gave up before this one was done
    ASSERT_FALSE(ended.ok());
    EXPECT_EQ(ended.error().code, Code::kPeerLost);
    EXPECT_NE(ended.error().text.find("a.csv:3"), std::string::npos) << ended.error().text;
  });
}

TEST(Columns, WhoIsNotAtTheSameRowsIsToldSo) {
  const Task task = MakeColumnTask("dense_logistic", 100, 11);
  std::vector<std::string> texts(2);
  fabric::RunMembers(2, [&](fabric::Fabric& fabric) {
    TestLearner learner(task);
    fabric::Collectives collectives(fabric);
    const auto strategy = Strategy::Make(Options(), learner.World(collectives)).value();
    if (fabric.rank() == 1) learner.optimizer->SetStep(7);
    const data::Batch piece = task.rows.batch().Slice(0, kBatch), mine = strategy->Share(piece);
    std::vector<float> scores(mine.rows);
    const auto failed = strategy->Step(piece, mine, scores);
    ASSERT_FALSE(failed.ok());
    fabric.Abort(failed.error());
    texts[static_cast<std::size_t>(fabric.rank())] = failed.error().text;
  });
  EXPECT_TRUE(texts[0].find("members of a ring are given the same rows") != texts[0].npos ||
              texts[1].find("members of a ring are given the same rows") != texts[1].npos)
      << texts[0] << "\n"
      << texts[1];
}

// By the clock of a simulated world, where computing takes time on rank 0 alone: the others wait for it as long.
TEST(Columns, WaitingForWhoIsSlowIsNoExchange) {
  constexpr std::size_t kSteps = 5;
  const Task task = MakeColumnTask("dense_logistic", 200, 13);
  fabric::sim::World world({.size = 3, .seed = 1});
  std::vector<StepTimes> times(3);
  world.Run([&](fabric::sim::World::Member& member) {
    const auto fabric = member.Connect();
    TestLearner learner(task);
    const Watched watched(*learner.model, [&](const data::Batch&) {
      if (member.rank() == 0) member.Compute(std::chrono::seconds(1));
    });
    fabric::Collectives collectives(*fabric);
    const auto strategy = Strategy::Make(Options(), {collectives, watched, *learner.parameters, *learner.optimizer,
                                                     learner.memory, member.clock()})
                              .value();
    std::vector<float> scores(kBatch);
    const data::Batch piece = task.rows.batch().Slice(0, kBatch);
    for (std::size_t step = 0; step < kSteps; ++step)
      ASSERT_TRUE(strategy->Step(piece, strategy->Share(piece), scores).ok());
    times[static_cast<std::size_t>(member.rank())] = strategy->times();
  });
  EXPECT_NEAR(times[0].compute, kSteps, 1e-6);
  EXPECT_LT(times[0].wait + times[0].exchange, 0.1);
  for (const StepTimes& each : {times[1], times[2]}) {
    EXPECT_NEAR(each.wait, kSteps - 1, 0.1);  // nobody waits for its last gradient
    EXPECT_GT(each.exchange, 0);
    EXPECT_LT(each.exchange, 0.1);
    EXPECT_LT(each.compute, 1e-6);
  }
}

TEST(Columns, RefuseWhatDoesNotGoWithThem) {
  const auto refused = [](const Task& task, const std::function<void(StrategyOptions&)>& change) {
    std::string text;
    fabric::RunMembers(2, [&](fabric::Fabric& fabric) {
      TestLearner learner(task);
      fabric::Collectives collectives(fabric);
      StrategyOptions options = Options();
      change(options);
      const auto made = Strategy::Make(options, learner.World(collectives));
      if (fabric.rank() == 0) text = made.ok() ? "" : ShowOptions(made.error().text, "");
    });
    return text;
  };
  const Task linear = MakeColumnTask("linear_logistic", 40, 1);
  EXPECT_EQ(refused(linear, [](StrategyOptions&) {}), "");
  EXPECT_NE(refused(linear, [](StrategyOptions& o) { o.codec = "int8"; }).find("codec int8"), std::string::npos);
  EXPECT_EQ(refused(linear, [](StrategyOptions& o) { o.accumulate = 2; }),
            "accumulate 2 is for networks: a step of this model takes a few numbers for each of its rows on a ring; "
            "leave it out");
  EXPECT_NE(refused(linear, [](StrategyOptions& o) { o.recompute = true; }).find("recompute is for networks"),
            std::string::npos);
  EXPECT_EQ(refused(linear, [](StrategyOptions& o) { o.balance = true; }), "");
  const std::string parts = refused(linear, [](StrategyOptions& o) {
    o.balance = true;
    o.whole = false;
  });
  EXPECT_NE(parts.find("balance does not go with split bytes or own on a ring"), std::string::npos) << parts;
}

TEST(Spread, GivesEachNumberOfTheModelToOneMemberAndBack) {
  for (const char* const name : {"linear_logistic", "dense_softmax", "fm_squared", "kmeans"})
    for (const int members : {1, 2, 5, 12}) {
      SCOPED_TRACE(Str(name, ", ", members, " members"));
      const Task task = MakeColumnTask(name, 50, 12);
      TestLearner whole(task), back(task);
      Spread spread(*whole.model, members);
      float next = 1;
      for (std::size_t b = 0; b < whole.parameters->blocks(); ++b) {
        for (float& value : whole.parameters->Values(b)) value = next++;
        for (float& value : back.parameters->Values(b)) value = 0;
        std::size_t numbers = 0;
        for (int member = 0; member < members; ++member) {
          const std::uint64_t rows = spread.CountRows(b, member, whole.parameters->rows(b));
          const std::size_t own = rows * spread.ColumnsOf(b, member).size();
          std::vector<float> values(own);
          spread.Take(*whole.parameters, b, member, 1, 0, values.data());
          for (const std::uint64_t piece : {0, 1, 2}) {  // whole rows
            const std::uint64_t width = rows == 0 ? 0 : own / rows;
            const std::uint64_t first = piece * rows / 3 * width, last = (piece + 1) * rows / 3 * width;
            spread.Give(std::span(values).subspan(first, last - first), b, member, 1, first, *back.parameters);
          }
          numbers += own;
        }
        const bool alike = whole.model->partials()->cut(b) == model::Partials::Cut::kAll;
        EXPECT_EQ(numbers, whole.parameters->Values(b).size() * (alike ? static_cast<std::size_t>(members) : 1));
      }
      EXPECT_EQ(back.Weights(), whole.Weights());
    }
}

}  // namespace
}  // namespace freshet::strategy::ring
