// Rows that each member of a ring reads alone: what they make together is what one makes of the rows of all.

#include "strategy/ring/handed_rows.h"

#include <gtest/gtest.h>

#include "fabric/collectives/transfers.h"
#include "fabric/sim/world.h"
#include "fabric/tcp/tcp_testing.h"
#include "strategy/alone.h"
#include "strategy/ring/columns_testing.h"

namespace freshet::strategy::ring {
namespace {

// How many rows each member has for each step. They lie one after another: those of the first member, of the second …,
// then those of the next step.
using Turns = std::vector<std::vector<std::size_t>>;

Turns EvenTurns(std::size_t steps, int members, std::size_t batch = 24) {
  return Turns(steps,
               std::vector<std::size_t>(static_cast<std::size_t>(members), batch / static_cast<std::size_t>(members)));
}

// Some have fewer than others or none; the first have no more at all before the last has.
Turns UnevenTurns(std::uint64_t seed, int members) {
  base::Random random(seed, "turns");
  Turns turns(8, std::vector<std::size_t>(static_cast<std::size_t>(members)));
  for (std::size_t step = 0; step < turns.size(); ++step)
    for (std::size_t member = 0; member < turns[step].size(); ++member)
      if (step < 3 + 5 * (member + 1) / turns[step].size()) turns[step][member] = random.Below(3) * random.Below(5);
  turns.back().back() = 1;
  return turns;
}

std::size_t RowsOf(const std::vector<std::size_t>& turn, std::size_t members) {
  std::size_t rows = 0;
  for (std::size_t member = 0; member < members; ++member) rows += turn[member];
  return rows;
}

struct Learned {
  std::vector<float> weights;
  std::vector<float> scores;  // of the rows that are this member's, step by step
  double loss = 0;
  StepTimes times;
};

StrategyOptions Options(bool whole, std::string kind = "ring") {
  StrategyOptions options;
  options.kind = std::move(kind);
  options.batch = 24;
  options.whole = whole;
  return options;
}

// One member, or one alone where there is no fabric. Who does not read all meets features when it reads them.
Learned LearnAs(fabric::Fabric* fabric, const Task& task, const StrategyOptions& options, const Turns& turns) {
  Learned learned;
  optimize::HeapMemory memory;
  const base::SystemClock clock;
  const auto model = model::Model::Make(task.config).value();
  const auto optimizer = optimize::Optimizer::Make(task.optimizer, memory).value();
  auto parameters = model->NewParameters(memory).value();
  const auto meet = [&](const data::Batch& rows) {
    ASSERT_TRUE(model->Prepare(parameters, rows).ok());
    ASSERT_TRUE(optimizer->Follow(parameters).ok());
  };
  CHECK(optimizer->Follow(parameters).ok());
  std::optional<fabric::Collectives> collectives;
  StrategyPtr strategy;
  const Learner learner{*model, parameters, *optimizer, memory, clock};
  if (fabric != nullptr) {
    collectives.emplace(*fabric);
    strategy = Strategy::Make(options, {*collectives, *model, parameters, *optimizer, memory, clock}).value();
  } else {
    strategy = Alone::Make({.batch = options.batch}, learner).value();
  }
  const auto me = static_cast<std::size_t>(strategy->rank());
  const bool reads_all = fabric == nullptr || options.whole;
  std::size_t begin = 0;
  for (std::size_t step = 0; step < turns.size(); ++step) {
    const std::size_t all = RowsOf(turns[step], turns[step].size()), before = RowsOf(turns[step], me);
    const data::Batch piece = reads_all ? task.rows.batch().Slice(begin, begin + all)
                                        : task.rows.batch().Slice(begin + before, begin + before + turns[step][me]);
    begin += all;
    strategy->SetProgress(static_cast<double>(step) / static_cast<double>(turns.size()));
    if (piece.rows == 0) {
      if (reads_all) continue;
      EXPECT_EQ(strategy->StepDry().value(), all == 0);
      continue;
    }
    meet(piece);
    const data::Batch mine = strategy->Share(piece);
    std::vector<float> scores(mine.rows * model->scores());
    const auto made = strategy->Step(piece, mine, scores);
    if (!made.ok()) {
      ADD_FAILURE() << made.error().text;
      return learned;
    }
    learned.loss += made.value().value();
    learned.scores.insert(learned.scores.end(), scores.begin(), scores.end());
  }
  learned.times = strategy->times();
  if (me == 0 || reads_all) meet(task.rows.batch().Slice(0, task.rows.size() / 2));  // rows that are held out, say
  const auto ended = strategy->EndEpoch();
  if (!ended.ok()) ADD_FAILURE() << ended.error().text;
  meet(task.rows.batch());
  for (std::size_t b = 0; b < parameters.blocks(); ++b) {
    const auto values = parameters.Values(b);
    learned.weights.insert(learned.weights.end(), values.begin(), values.end());
  }
  return learned;
}

std::vector<Learned> Learn(const Task& task, int members, const StrategyOptions& options, const Turns& turns) {
  std::vector<Learned> learned(static_cast<std::size_t>(members));
  fabric::RunMembers(members, [&](fabric::Fabric& fabric) {
    learned[static_cast<std::size_t>(fabric.rank())] = LearnAs(&fabric, task, options, turns);
  });
  return learned;
}

double LossOf(const std::vector<Learned>& members) {
  double loss = 0;
  for (const Learned& member : members) loss += member.loss;
  return loss;
}

class HandedRowsOf : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, HandedRowsOf,
                         testing::Values("linear_logistic", "linear_hinge", "linear_squared", "linear_softmax",
                                         "dense_logistic", "dense_hinge", "dense_squared", "dense_softmax",
                                         "fm_logistic", "fm_hinge", "fm_squared", "kmeans"),
                         [](const auto& chosen) { return std::string(chosen.param); });

// Once they are handed on it does not matter who has read them: the same bits as where all read all.
TEST_P(HandedRowsOf, AreLearnedFromAsIfAllHadReadAllWhateverTheRule) {
  // Not the first seed: of its first 24 rows of a table a third are of one class, so that the gradient of its bias cancels but
  // for roundings, of which adagrad and adam make a whole step, another one by all-reduce.
  Task task = MakeColumnTask(GetParam(), 200, 2);
  const bool kmeans = task.config.kind == "kmeans";
  for (const std::string& rule : optimize::Optimizer::Kinds()) {
    task.optimizer.kind = rule;
    const bool magnifies = task.config.kind == "fm" && (rule == "adagrad" || rule == "adam" || rule == "adaptive");
    const bool all = rule == "adaptive" || rule == "adagrad";
    for (const int members : all ? std::vector{1, 2, 3, 4, 6, 8} : std::vector{3}) {
      SCOPED_TRACE(Str(rule, ", ", members, " members"));
      const Turns turns = EvenTurns(8, members);
      const Learned alone = LearnAs(nullptr, task, Options(true), turns);
      const auto got = Learn(task, members, Options(false), turns), want = Learn(task, members, Options(true), turns);
      for (std::size_t member = 0; member < got.size(); ++member) {
        EXPECT_EQ(got[member].weights, want[member].weights);
        EXPECT_EQ(got[member].scores, want[member].scores);
        EXPECT_EQ(got[member].loss, want[member].loss);
      }
      EXPECT_LE(Distance(alone.weights, got[0].weights), magnifies ? 1e-5 : 1e-6);
      EXPECT_NEAR(alone.loss, LossOf(got), 1e-6 * std::abs(alone.loss));
      if (kmeans) continue;
      const auto summed = Learn(task, members, Options(false, "allreduce"), turns);
      EXPECT_LE(Distance(summed[0].weights, got[0].weights), magnifies ? 1e-5 : 1e-6);
      EXPECT_NEAR(LossOf(summed), LossOf(got), 1e-5 * std::abs(alone.loss));
    }
  }
}

TEST_P(HandedRowsOf, SomeMembersMayHaveFewerThanOthersOrNone) {
  Task task = MakeColumnTask(GetParam(), 300, 2);
  task.optimizer.l2 = 1e-3;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const int members = 1 + static_cast<int>(seed % 5);
    SCOPED_TRACE(Str("seed ", seed, ", ", members, " members"));
    const Turns turns = UnevenTurns(seed, members);
    const Learned alone = LearnAs(nullptr, task, Options(true), turns);
    const auto got = Learn(task, members, Options(false), turns);
    for (const Learned& each : got) EXPECT_EQ(each.weights, got[0].weights);
    EXPECT_LE(Distance(alone.weights, got[0].weights), 1e-6);
    EXPECT_NEAR(alone.loss, LossOf(got), 1e-6 * std::abs(alone.loss));
  }
}

TEST_P(HandedRowsOf, WithWeightsForSomeMembersAloneOthersWeighOne) {
  Task task = MakeColumnTask(GetParam(), 48, 3);
  Task weighted = MakeColumnTask(GetParam(), 48, 3);
  task.rows.weights.Clear();
  weighted.rows.weights.Clear();
  for (std::size_t r = 0; r < 48; ++r) weighted.rows.weights.Append(r % 24 < 12 ? 1.5f : 1.0f);
  const Turns turns = EvenTurns(2, 2);
  std::vector<Learned> got(2);
  fabric::RunMembers(2, [&](fabric::Fabric& fabric) {
    const Task& mine = fabric.rank() == 0 ? weighted : task;
    got[static_cast<std::size_t>(fabric.rank())] = LearnAs(&fabric, mine, Options(false), turns);
  });
  EXPECT_EQ(got[0].weights, Learn(weighted, 2, Options(true), turns)[0].weights);
  EXPECT_EQ(got[1].weights, got[0].weights);
}

TEST_P(HandedRowsOf, OverSocketsAndInSimulatedWorldsTheyMakeTheSameBytes) {
  const Task task = MakeColumnTask(GetParam(), 300, 4);
  const Turns turns = UnevenTurns(5, 3);
  const auto threads = Learn(task, 3, Options(false), turns);
  EXPECT_EQ(Learn(task, 3, Options(false), turns)[2].weights, threads[2].weights);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    fabric::sim::World world({.size = 3, .seed = seed});
    std::vector<Learned> learned(3);
    world.Run([&](fabric::sim::World::Member& member) {
      const auto fabric = member.Connect();
      learned[static_cast<std::size_t>(member.rank())] = LearnAs(fabric.get(), task, Options(false), turns);
    });
    for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(learned[rank].weights, threads[rank].weights);
  }
  base::SystemClock clock;
  fabric::Members members = fabric::ConnectAll(3, clock);
  std::vector<Learned> learned(3);
  {
    std::vector<std::jthread> workers;
    for (std::size_t rank = 0; rank < 3; ++rank)
      workers.emplace_back([&, rank] {
        ASSERT_TRUE(members[rank].ok()) << members[rank].error().text;
        learned[rank] = LearnAs(members[rank].value().get(), task, Options(false), turns);
      });
  }
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(learned[rank].weights, threads[rank].weights);
    EXPECT_EQ(learned[rank].scores, threads[rank].scores);
  }
}

// Of each entry, number or row how often it leaves a member: as often as there are members on its way to whose it is.
TEST_P(HandedRowsOf, NothingTravelsFurtherThanItIsNeeded) {
  const Task task = MakeColumnTask(GetParam(), 48, 5);
  const auto model = model::Model::Make(task.config).value();
  const data::Batch rows = task.rows.batch();
  const bool kmeans = task.config.kind == "kmeans";
  for (const int members : {1, 2, 3, 4, 8}) {
    SCOPED_TRACE(Str(members, " members"));
    const Turns turns = EvenTurns(2, members);
    const auto learned = Learn(task, members, Options(false), turns);
    const auto n = static_cast<std::size_t>(members);
    Spread spread(*model, members);
    std::vector<std::uint64_t> floats(n, 0), heads(n, 0);  // by the member that sends them
    for (std::size_t r = 0; r < rows.rows; ++r) {
      const std::size_t reader = r % 24 / (24 / n);
      for (std::size_t hop = 0; hop + 1 < n; ++hop) {
        std::uint64_t& sent = floats[(reader + hop) % n];
        sent += rows.weights == nullptr ? 1 : 2;  // label and weight
        const auto passes = [&](int owner) { return (static_cast<std::size_t>(owner) + n - reader) % n > hop; };
        if (kmeans) {
          sent += rows.width;
        } else if (rows.sparse()) {
          sent += 1;  // where it ends
          for (std::uint32_t e = rows.offsets[r]; e < rows.offsets[r + 1]; ++e)
            if (passes(spread.OwnerOfRange(rows.indices[e] / Spread::kRangeRows))) sent += 2;
        } else {
          for (int owner = 0; owner < members; ++owner)
            if (passes(owner)) sent += spread.ColumnsOf(0, owner).size();
        }
      }
    }
    for (std::size_t member = 0; member < n; ++member) {
      const StepTimes& times = learned[member].times;
      EXPECT_EQ(times.bytes_handed, floats[member] * sizeof(float));
      EXPECT_EQ(times.bytes_next, 2 * 2 * (n - 1) * (24 / n) * model->partials()->width() * sizeof(float));
      EXPECT_EQ(times.bytes_back, 0u);
      EXPECT_EQ(times.bytes_sent, times.bytes_handed + times.bytes_next +
                                      2 * (n - 1) * (HandedRows::HeadBytes() + 2 * PartialLaps::HeadBytes()));
      EXPECT_EQ(times.rows, 2 * 24 / n);
      EXPECT_EQ(times.steps, 2u);
    }
  }
}

TEST(HandedRows, WhatOneAsksAllAgreeOnWithTheSameStepAndAStopChangesNothing) {
  const Task task = MakeColumnTask("linear_logistic", 100, 8);
  fabric::RunMembers(3, [&](fabric::Fabric& fabric) {
    TestLearner learner(task);
    fabric::Collectives collectives(fabric);
    const auto strategy = Strategy::Make(Options(false), learner.World(collectives)).value();
    EXPECT_FALSE(strategy->reads_all());
    EXPECT_FALSE(strategy->interchangeable());
    EXPECT_EQ(strategy->piece(), 8u);
    const auto begin = static_cast<std::size_t>(fabric.rank()) * 8;
    const data::Batch mine = task.rows.batch().Slice(begin, begin + 8);
    std::vector<float> scores(mine.rows);
    strategy->Ask(false, fabric.rank() == 0);
    ASSERT_TRUE(strategy->Step(mine, mine, scores).value().has_value());
    EXPECT_TRUE(strategy->save_agreed());
    EXPECT_FALSE(strategy->stop_agreed());
    ASSERT_TRUE(strategy->Settle().ok());
    const std::vector<float> before = learner.Weights();
    strategy->Ask(fabric.rank() == 2, false);
    EXPECT_FALSE(strategy->Step(mine, mine, scores).value().has_value());
    EXPECT_TRUE(strategy->stop_agreed());
    EXPECT_FALSE(strategy->save_agreed());
    strategy->Forget();
    strategy->Ask(fabric.rank() == 1, false);  // by one who has no more rows, nor have the others
    EXPECT_TRUE(strategy->StepDry().value());
    EXPECT_TRUE(strategy->stop_agreed());
    ASSERT_TRUE(strategy->Settle().ok());
    EXPECT_EQ(learner.Weights(), before);
    EXPECT_EQ(learner.optimizer->step(), 1u);
  });
}

// All go by one rate, though some have come further in their rows than others.
TEST(HandedRows, MembersGoByTheMeanOfTheirProgress) {
  const Task task = MakeColumnTask("dense_logistic", 24, 9);
  std::vector<double> progress(4);
  fabric::RunMembers(4, [&](fabric::Fabric& fabric) {
    fabric::Collectives collectives(fabric);
    const auto model = model::Model::Make(task.config).value();
    HandedRows handed(collectives, *model);
    const auto met = handed.Meet({.number = 3, .progress = 0.25 * fabric.rank(), .mine = {}}, {}).value();
    EXPECT_EQ(met.rows.rows, 0u);
    progress[static_cast<std::size_t>(fabric.rank())] = met.progress;
  });
  EXPECT_EQ(progress, std::vector<double>(4, 0.375));
}

TEST(HandedRows, WhoIsNotAtTheSameStepIsToldSo) {
  const Task task = MakeColumnTask("dense_logistic", 24, 10);
  std::vector<std::string> texts(3);
  fabric::RunMembers(3, [&](fabric::Fabric& fabric) {
    fabric::Collectives collectives(fabric);
    const auto model = model::Model::Make(task.config).value();
    HandedRows handed(collectives, *model);
    const auto met = handed.Meet({.number = fabric.rank() == 1 ? 7u : 3u, .progress = 0, .mine = {}}, {});
    ASSERT_FALSE(met.ok());
    texts[static_cast<std::size_t>(fabric.rank())] = met.error().text;
  });
  for (const std::string& text : texts)
    EXPECT_NE(text.find("all members of a ring go on from the same one"), std::string::npos) << text;
}

// Letters of which bytes were changed or that end early: rows of the right shape, or an error that says so.
TEST(HandedRows, DamagedOnesAreRefusedOrHaveTheRightShape) {
  for (const char* const name : {"linear_logistic", "dense_softmax", "kmeans"}) {
    const Task task = MakeColumnTask(name, 24, 11);
    const auto model = model::Model::Make(task.config).value();
    std::vector<std::byte> letter;
    const auto run = [&](const std::function<void(std::vector<std::byte>&)>& change) {
      Result<HandedRows::Met> met = HandedRows::Met();
      fabric::RunMembers(2, [&](fabric::Fabric& fabric) {
        fabric::Collectives collectives(fabric);
        if (fabric.rank() == 0) {
          HandedRows handed(collectives, *model);
          met = handed.Meet({.number = 3, .progress = 0, .mine = {}}, task.rows.batch().Slice(0, 5));
          if (!met.ok()) return;
          const data::Batch& rows = met.value().rows;
          for (std::size_t r = 0; rows.sparse() && r < rows.rows; ++r) EXPECT_LE(rows.offsets[r], rows.offsets[r + 1]);
          return;
        }
        fabric::Transfers transfers(fabric, collectives.NextTag(), "damaging");
        const auto lent = transfers.Borrow(0).value();
        const auto arrived = transfers.Wait(lent);
        if (!arrived.ok()) return;
        if (letter.empty()) letter.assign(arrived.value().view.begin(), arrived.value().view.end());
        transfers.Release(lent);
        std::vector<std::byte> changed = letter;
        change(changed);
        const auto sent = transfers.SendAny(0, changed);
        if (sent.ok()) (void)transfers.Wait(sent.value());
      });
      return met;
    };
    (void)run([](std::vector<std::byte>&) {});  // which keeps the letter
    int refused = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      SCOPED_TRACE(Str(name, ", seed ", seed));
      base::Random random(seed, "damage");
      const auto met = run([&](std::vector<std::byte>& bytes) {
        if (seed % 2 == 0) bytes.resize(random.Below(bytes.size()) / 4 * 4);
        for (int k = 0; k < 3 && !bytes.empty(); ++k)
          bytes[random.Below(std::min<std::size_t>(bytes.size(), 64))] = static_cast<std::byte>(random.Below(4));
      });
      if (met.ok()) continue;
      ++refused;
      EXPECT_TRUE(met.error().code == Code::kCorrupt || met.error().code == Code::kInvalid) << met.error().text;
    }
    EXPECT_GT(refused, 20);
  }
}

// By the clock of a simulated world: who is late is waited for by all, and that is no exchange.
TEST(HandedRows, WaitingForWhoIsLateIsNoExchange) {
  const Task task = MakeColumnTask("dense_logistic", 200, 12);
  fabric::sim::World world({.size = 3, .seed = 1});
  std::vector<StepTimes> times(3);
  world.Run([&](fabric::sim::World::Member& member) {
    const auto fabric = member.Connect();
    TestLearner learner(task);
    fabric::Collectives collectives(*fabric);
    const auto strategy = Strategy::Make(Options(false), {collectives, *learner.model, *learner.parameters,
                                                          *learner.optimizer, learner.memory, member.clock()})
                              .value();
    std::vector<float> scores(8);
    for (std::size_t step = 0; step < 5; ++step) {
      if (member.rank() == 0 && step > 0) member.Compute(std::chrono::seconds(1));
      const data::Batch mine = task.rows.batch().Slice(step * 8, step * 8 + 8);
      ASSERT_TRUE(strategy->Step(mine, mine, scores).ok());
    }
    times[static_cast<std::size_t>(member.rank())] = strategy->times();
  });
  EXPECT_LT(times[0].wait + times[0].exchange, 0.1);
  for (const StepTimes& each : {times[1], times[2]}) {
    EXPECT_NEAR(each.wait, 4, 0.1);
    EXPECT_GT(each.exchange, 0);
    EXPECT_LT(each.exchange, 0.1);
  }
}

}  // namespace
}  // namespace freshet::strategy::ring
