// Columns that move between neighbours: the same model, and no longer with who is slow.

#include "strategy/ring/column_moves.h"

#include <gtest/gtest.h>

#include "base/option.h"
#include "fabric/sim/world.h"
#include "strategy/ring/columns_testing.h"
#include "strategy/ring/parted.h"
#include "strategy/watched_testing.h"

namespace freshet::strategy::ring {
namespace {

constexpr int kMembers = 4;
constexpr std::size_t kBatch = 24, kRows = 480;

// Enough columns for a cut to be a fine one.
Task Wide(const std::string& name) {
  Task task;
  std::string rule = "sgd";
  if (name.starts_with("dense")) {
    rule = "momentum";
    task = Numbers("logistic", 1, 0, 1);
    task.config.features = 64;
    base::Random random(1, "wide");
    AddNoisyRows(task.rows, kRows, 64, 2, random);
  } else if (name == "kmeans") {
    task = Clusters(kRows, 1);
    task.config.clusters = 24;
  } else {
    if (name == "linear") rule = "adaptive";
    task = Features(name, "logistic", 1, 0, 1);
    base::Random random(1, "wide");
    for (std::size_t r = 0; r < kRows; ++r) {
      std::vector<std::pair<std::uint32_t, float>> entries;
      for (std::uint32_t k = 0; k < 16; ++k)
        entries.emplace_back(250 * k + static_cast<std::uint32_t>(random.Below(250)), 1.0f);
      model::AddSparse(task.rows, static_cast<float>(r % 2), entries);
    }
  }
  task.optimizer.kind = rule;
  return task;
}

struct Ran {
  std::vector<float> weights;
  std::vector<std::size_t> part;  // bytes of what it holds, step by step
  std::vector<double> ended;      // seconds at which steps did
  StepTimes times;
};

// In a world where computing takes a millisecond for each entry of a member's own, on the slow one two.
std::vector<Ran> TrainTogether(const Task& task, std::size_t steps, bool balance, int slow, std::uint64_t seed = 1) {
  std::vector<Ran> all(kMembers);
  fabric::sim::World world({.size = kMembers, .seed = seed});
  world.Run([&](fabric::sim::World::Member& member) {
    Ran& ran = all[static_cast<std::size_t>(member.rank())];
    const auto fabric = member.Connect();
    TestLearner learner(task);
    const Watched watched(*learner.model, [&](const data::Batch& rows) {
      member.Compute(std::chrono::milliseconds(rows.entries() * (member.rank() == slow ? 2 : 1)));
    });
    fabric::Collectives collectives(*fabric);
    StrategyOptions options;
    options.kind = "ring";
    options.batch = kBatch;
    options.balance = balance;
    const auto strategy = Strategy::Make(options, {collectives, watched, *learner.parameters, *learner.optimizer,
                                                   learner.memory, member.clock()})
                              .value();
    std::vector<float> scores(kBatch);
    for (std::size_t step = 0; step < steps; ++step) {
      const std::size_t begin = step * kBatch % kRows;
      const data::Batch piece = task.rows.batch().Slice(begin, begin + kBatch);
      const auto made = strategy->Step(piece, strategy->Share(piece), scores);
      ASSERT_TRUE(made.ok()) << made.error().text;
      ran.part.push_back(dynamic_cast<Parted&>(*strategy).Part().size());
      ran.ended.push_back(base::Seconds(member.clock().Now()));
      if (step != steps / 2) continue;
      ASSERT_TRUE(strategy->Settle().ok());  // in the midst, and they go on
    }
    ASSERT_TRUE(strategy->EndEpoch().ok());
    ran.weights = learner.Weights();
    ran.times = strategy->times();
  });
  return all;
}

double LaterStep(const std::vector<Ran>& all) {
  const std::vector<double>& ended = all[0].ended;
  return (ended[ended.size() - 1] - ended[ended.size() - 21]) / 20;
}

class ColumnMovesOf : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, ColumnMovesOf, testing::Values("linear", "fm", "dense", "kmeans"),
                         [](const auto& chosen) { return std::string(chosen.param); });

TEST_P(ColumnMovesOf, GoFromWhoIsSlowAndTheModelStaysTheSame) {
  const Task task = Wide(GetParam());
  for (int slow = 0; slow < kMembers; ++slow) {
    SCOPED_TRACE(Str("member ", slow, " is slow"));
    const auto still = TrainTogether(task, 60, false, slow), moved = TrainTogether(task, 60, true, slow);
    std::uint64_t bytes = 0;
    for (const Ran& each : moved) {
      EXPECT_EQ(each.weights, moved[0].weights);
      bytes += each.times.bytes_moved;
    }
    EXPECT_LE(Distance(still[0].weights, moved[0].weights), 1e-6);
    EXPECT_GT(bytes, 0u);
    const std::vector<std::size_t>& part = moved[static_cast<std::size_t>(slow)].part;
    EXPECT_LT(part.back(), part.front() * 9 / 10);
    for (const Ran& each : still) EXPECT_EQ(each.times.bytes_moved, 0u);
    EXPECT_EQ(TrainTogether(task, 60, true, slow, 2)[0].weights, moved[0].weights);
  }
}

// What all together compute in the time of a step, if nobody waits.
TEST(ColumnMoves, FindACutNearlyAsGoodAsTheBestThoughOneIsSlow) {
  for (const char* const name : {"linear", "dense"})
    for (int slow = 0; slow < kMembers; ++slow) {
      const Task task = Wide(name);
      const double best = static_cast<double>(kBatch * task.rows.batch().entries() / kRows) / 1000 / (kMembers - 0.5);
      const double before = LaterStep(TrainTogether(task, 100, false, slow)),
                   after = LaterStep(TrainTogether(task, 100, true, slow));
      RecordProperty(Str(name, "_", slow), Str(best / before, " ", best / after));
      EXPECT_LT(best / before, 0.65) << name << ", member " << slow << " is slow";
      EXPECT_GE(best / after, 0.85) << name << ", member " << slow << " is slow";
      EXPECT_LE(best / after, 1.02);
    }
}

TEST(ColumnMoves, WhereAllIsEqualNothingMoves) {
  for (const Ran& each : TrainTogether(Wide("dense"), 60, true, -1)) EXPECT_EQ(each.times.bytes_moved, 0u);
}

// Who goes on from a checkpoint has the same columns: the same bits, as long as nothing moves again.
TEST_P(ColumnMovesOf, AreWhereACheckpointSays) {
  const Task task = Wide(GetParam());
  std::vector<std::vector<float>> straight(kMembers), resumed(kMembers);
  fabric::sim::World world({.size = kMembers, .seed = 1});
  std::vector<std::string> saved(kMembers);
  std::vector<std::unique_ptr<TestLearner>> half(kMembers);
  const auto train = [&](fabric::Fabric& fabric, const model::Model& model, TestLearner& learner,
                         const base::Clock& clock, const std::function<void(Strategy&)>& with) {
    fabric::Collectives collectives(fabric);
    StrategyOptions options;
    options.kind = "ring";
    options.batch = kBatch;
    options.balance = true;
    const auto strategy =
        Strategy::Make(options, {collectives, model, *learner.parameters, *learner.optimizer, learner.memory, clock})
            .value();
    with(*strategy);
  };
  const auto steps = [&](Strategy& strategy, std::size_t first, std::size_t last) {
    std::vector<float> scores(kBatch);
    for (std::size_t step = first; step < last; ++step) {
      const data::Batch piece = task.rows.batch().Slice(step % 20 * kBatch, step % 20 * kBatch + kBatch);
      ASSERT_TRUE(strategy.Step(piece, strategy.Share(piece), scores).ok());
    }
    ASSERT_TRUE(strategy.Settle().ok());
  };
  world.Run([&](fabric::sim::World::Member& member) {
    const auto rank = static_cast<std::size_t>(member.rank());
    bool slow = true;  // then nobody takes any time, and nothing moves
    TestLearner learner(task);
    const Watched watched(*learner.model, [&](const data::Batch&) {
      if (slow) member.Compute(std::chrono::milliseconds(member.rank() == 1 ? 20 : 10));
    });
    train(*member.Connect(), watched, learner, member.clock(), [&](Strategy& strategy) {
      steps(strategy, 0, 32);  // whole rounds
      EXPECT_TRUE(member.rank() != 1 || strategy.times().bytes_moved > 0);
      saved[rank] = [&] {
        std::vector<data::Tensor> tensors;
        strategy.Save(tensors);
        base::StringFile file;
        EXPECT_TRUE(data::WriteTensors(file, tensors, {}).ok());
        return file.text;
      }();
      half[rank] = std::make_unique<TestLearner>(task);
      half[rank]->parameters->CopyFrom(*learner.parameters);
      half[rank]->optimizer->state().CopyFrom(learner.optimizer->state());
      half[rank]->optimizer->SetStep(learner.optimizer->step());
      slow = false;
      steps(strategy, 32, 52);
    });
    straight[rank] = learner.Weights();
  });
  fabric::sim::World again({.size = kMembers, .seed = 2});
  again.Run([&](fabric::sim::World::Member& member) {
    const auto rank = static_cast<std::size_t>(member.rank());
    TestLearner& learner = *half[rank];
    train(*member.Connect(), *learner.model, learner, member.clock(), [&](Strategy& strategy) {
      ASSERT_TRUE(strategy.Load(data::TensorFile::Parse(saved[rank], "saved").value()).ok());
      steps(strategy, 32, 52);
    });
    resumed[rank] = learner.Weights();
  });
  EXPECT_EQ(resumed, straight);
}

TEST(Spread, ColumnsThatWereMovedBelongToOneMemberEach) {
  for (const char* const name : {"linear", "dense", "kmeans"})
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
      SCOPED_TRACE(Str(name, ", seed ", seed));
      base::Random random(seed, name);
      const Task task = Wide(name);
      TestLearner whole(task), back(task);
      Spread spread(*whole.model, kMembers);
      for (int move = 0; move < 12; ++move) {
        const int from = static_cast<int>(random.Below(kMembers)),
                  to = from + (from == 0 || (from < 3 && move % 2) ? 1 : -1);
        Spread::Columns columns;
        if (spread.cut_length() > 0) {
          const Spread::Range held = spread.RangeOf(from);
          if (held.size() == 0) continue;
          const auto count = static_cast<std::uint32_t>(1 + random.Below(held.size()));
          const auto first = static_cast<std::uint32_t>(held.first), last = static_cast<std::uint32_t>(held.last);
          columns = to > from ? Spread::Columns{last - count, last} : Spread::Columns{first, first + count};
        } else {
          for (std::uint32_t range = 0; range < 250; ++range)
            if (spread.OwnerOfRange(range) == from && random.Below(3) == 0) columns.push_back(range);
        }
        spread.Move(columns, from, to);
      }
      // Somebody else is told what all hold.
      Spread told(*whole.model, kMembers);
      std::vector<Spread::Columns> held;
      for (int member = 0; member < kMembers; ++member) held.push_back(spread.HeldBy(member));
      ASSERT_TRUE(told.Hold(held));
      ASSERT_TRUE(spread.Hold(held));
      float next = 1;
      for (std::size_t b = 0; b < whole.parameters->blocks(); ++b) {
        for (float& value : whole.parameters->Values(b)) value = next++;
        for (float& value : back.parameters->Values(b)) value = 0;
        std::size_t numbers = 0;
        for (int member = 0; member < kMembers; ++member) {
          const std::uint64_t rows = spread.CountRows(b, member, whole.parameters->rows(b));
          EXPECT_EQ(rows, told.CountRows(b, member, whole.parameters->rows(b)));
          std::vector<float> values(rows * spread.ColumnsOf(b, member).size());
          spread.Take(*whole.parameters, b, member, 1, 0, values.data());
          told.Give(values, b, member, 1, 0, *back.parameters);
          numbers += values.size();
        }
        const bool alike = whole.model->partials()->cut(b) == model::Partials::Cut::kAll;
        EXPECT_EQ(numbers, whole.parameters->Values(b).size() * (alike ? kMembers : 1));
      }
      EXPECT_EQ(back.Weights(), whole.Weights());
    }
}

TEST(Spread, WhatCannotBeHeldIsNotBelieved) {
  const Task dense = Wide("dense"), sparse = Wide("linear");
  TestLearner table(dense), features(sparse);
  Spread numbers(*table.model, 2), ranges(*features.model, 2);
  EXPECT_TRUE(numbers.Hold({{0, 60}, {60, 64}}));
  EXPECT_EQ(numbers.RangeOf(0).size(), 60u);
  for (const auto& held : std::vector<std::vector<Spread::Columns>>{{{0, 60}, {61, 64}},
                                                                    {{0, 60}},
                                                                    {{0, 60}, {60, 65}},
                                                                    {{0, 60}, {}},
                                                                    {{1, 60}, {60, 64}},
                                                                    {{0, 70}, {70, 64}}})
    EXPECT_FALSE(numbers.Hold(held));
  EXPECT_EQ(numbers.RangeOf(0).size(), 60u);
  EXPECT_FALSE(ranges.Hold({{0xffffffff}, {}}));
  const std::uint32_t here = ranges.OwnerOfRange(0) == 0 ? 0u : 1u, far = 0xffffffff;
  EXPECT_TRUE(numbers.MayMove(Spread::Columns{50, 60}, 0, 1));
  for (const auto& columns : std::vector<Spread::Columns>{{50, 61}, {60, 60}, {61, 60}, {50}, {}})
    EXPECT_FALSE(numbers.MayMove(columns, 0, 1));
  EXPECT_FALSE(numbers.MayMove(Spread::Columns{60, 65}, 1, 0));
  EXPECT_EQ(ranges.MayMove(Spread::Columns{0}, 0, 1), here == 0);
  EXPECT_FALSE(ranges.MayMove(Spread::Columns{far}, 0, 1));
}

}  // namespace
}  // namespace freshet::strategy::ring
