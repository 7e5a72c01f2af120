#include "strategy/server/balance.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "strategy/server/placement.h"
#include "strategy/worlds_testing.h"

namespace freshet::strategy::server {
namespace {

std::uint64_t Most(const std::vector<Load>& loads) {
  std::uint64_t most = 0;
  for (const Load& each : loads) most = std::max(most, each.bytes);
  return most;
}

TEST(Balance, LeavesWhatIsAboutEven) {
  EXPECT_TRUE(Balance({}).empty());
  EXPECT_TRUE(Balance({{.bytes = 100, .busiest = {{0, 1, 60}}}}).empty());
  EXPECT_TRUE(Balance({{.bytes = 120, .busiest = {{0, 1, 60}}}, {.bytes = 100, .busiest = {{0, 2, 50}}}}).empty());
  EXPECT_TRUE(Balance({{.bytes = 0, .busiest = {}}, {.bytes = 0, .busiest = {}}}).empty());
}

TEST(Balance, MovesWhatIsHotToWhoHasLeast) {
  const std::vector<Load> loads = {{.bytes = 300, .busiest = {{0, 1, 100}, {0, 7, 90}, {2, 3, 80}}},
                                   {.bytes = 50, .busiest = {{0, 2, 50}}},
                                   {.bytes = 100, .busiest = {{0, 4, 40}}}};
  const std::vector<Move> moves = Balance(loads);
  ASSERT_FALSE(moves.empty());
  EXPECT_EQ(moves[0], (Move{0, 1, 1}));
}

TEST(Balance, ScattersWhatIsTooMuchForOne) {
  const std::vector<Load> loads = {{.bytes = 1000, .busiest = {{0, 0, 990, 64}}}, {.bytes = 10, .busiest = {}}};
  EXPECT_EQ(Balance(loads), (std::vector<Move>{{0, 0, Placement::kScattered}}));
}

TEST(Balance, LeavesARowThatIsTooMuchForOne) {
  const std::vector<Load> loads = {{.bytes = 1000, .busiest = {{0, 0, 990}, {1, 0, 10}}}, {.bytes = 10, .busiest = {}}};
  for (const Move& move : Balance(loads)) EXPECT_EQ(move.group, 1u);
}

TEST(Balance, NobodyHasMuchMoreThanTheMeanAfterIt) {
  base::Random random(5, "balance");
  for (int world = 0; world < 200; ++world) {
    std::vector<Load> loads(2 + random.Below(15));
    std::uint64_t all = 0;
    for (std::size_t s = 0; s < loads.size(); ++s) {
      const std::uint64_t ranges = 20 + random.Below(40);
      for (std::uint64_t range = 0; range < ranges; ++range) {
        const std::uint64_t bytes = 1000 + random.Below(s == 0 ? 60'000 : 8000);
        loads[s].busiest.push_back({0, range * 100 + s, bytes});
        loads[s].bytes += bytes;
      }
      std::sort(loads[s].busiest.begin(), loads[s].busiest.end(),
                [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
      all += loads[s].bytes;
    }
    std::vector<Load> after = loads;
    for (const Move& move : Balance(loads)) {
      ASSERT_NE(move.to, Placement::kScattered);
      for (Load& each : after)
        for (auto range = each.busiest.begin(); range != each.busiest.end(); ++range)
          if (range->range == move.range) {
            const Load::Range moved = *range;
            each.busiest.erase(range);
            each.bytes -= moved.bytes;
            after[static_cast<std::size_t>(move.to)].bytes += moved.bytes;
            break;
          }
    }
    EXPECT_LE(Most(after), Most(loads));
    EXPECT_LT(Most(after) * after.size(), all * 5 / 4) << loads.size();
  }
}

TEST(Placement, RangesLieWhereTheyWereMoved) {
  Placement placement({{"weights", 0, 1, 10'000}, {"factors", 0, 4, 10'000}, {"bias", 1, 1}}, 3, {.range_rows = 64});
  EXPECT_EQ(placement.GroupOf(0), placement.GroupOf(1));
  const int to = (placement.ServerOf(0, 130) + 1) % 3;
  placement.Move(placement.GroupOf(0), 2, to);
  for (const std::size_t b : {0, 1}) {
    EXPECT_EQ(placement.ServerOf(b, 128), to);
    EXPECT_EQ(placement.ServerOf(b, 191), to);
  }
  placement.Move(placement.GroupOf(0), 5, Placement::kScattered);
  std::uint64_t rows = 0;
  for (int server = 0; server < 3; ++server) {
    EXPECT_EQ(placement.ServerOf(1, 321 + static_cast<std::uint64_t>(server)), server);
    rows += placement.RowsOf(server, 0, 10'000);
  }
  EXPECT_EQ(rows, 10'000u);
}

// All features of the task lie in one range, and so with one server, until all have met.
TEST(Server, WhatIsHotMovesWhenAllMeetAndTheModelIsTheSame) {
  for (const std::string name : {"linear", "fm", "factorization"})
    for (const bool large : {false, true}) {
      SCOPED_TRACE(Str(name, large ? ", large" : ""));
      const Task task = MakeTask(name, 480, 3);
      const auto train = [&](const std::string& kind, std::vector<std::optional<Report>>* reports) {
        std::vector<std::vector<float>> weights(2);
        fabric::RunMembers(2, [&](fabric::Fabric& fabric) {
          const auto rank = static_cast<std::size_t>(fabric.rank());
          TestLearner learner(task);
          fabric::Collectives collectives(fabric, {});
          const auto strategy = Strategy::Make({.kind = kind, .batch = 24, .large = large && kind == "server"},
                                               learner.World(collectives))
                                    .value();
          std::vector<float> scores(24);
          for (int epoch = 0; epoch < 3; ++epoch) {
            for (std::size_t begin = 0; begin < 480; begin += 24) {
              const data::Batch piece = task.rows.batch().Slice(begin, begin + 24);
              ASSERT_TRUE(strategy->Step(piece, strategy->Share(piece), scores).ok());
            }
            ASSERT_TRUE(strategy->EndEpoch().ok());
            if (reports != nullptr) reports->at(rank * 3 + static_cast<std::size_t>(epoch)) = strategy->report();
          }
          weights[rank] = learner.Weights();
        });
        EXPECT_EQ(weights[0], weights[1]);
        return weights[0];
      };
      std::vector<std::optional<Report>> reports(6);
      EXPECT_EQ(train("server", &reports), train("allreduce", nullptr));
      const auto bytes = [&](std::size_t rank, std::size_t epoch) {
        std::uint64_t sum = 0;
        for (const Report::Block& block : reports[rank * 3 + epoch]->blocks) sum += block.pulled + block.pushed;
        return static_cast<double>(sum);
      };
      EXPECT_GT(reports[0]->moved, 0u);
      EXPECT_EQ(reports[0]->moved, reports[3]->moved);
      const double first = bytes(0, 2) - bytes(0, 0), second = bytes(1, 2) - bytes(1, 0);
      EXPECT_GT(std::max(bytes(0, 0), bytes(1, 0)), 1.25 * (bytes(0, 0) + bytes(1, 0)) / 2);
      EXPECT_LT(std::max(first, second), 1.25 * (first + second) / 2);
    }
}

}  // namespace
}  // namespace freshet::strategy::server
