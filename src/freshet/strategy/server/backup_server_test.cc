// Bulk workers of a parameter server that do not wait for the slowest make what one worker makes of the whole batch, and each
// row counts once, whoever is slow when.

#include <gtest/gtest.h>

#include <thread>

#include "base/option.h"
#include "strategy/worlds_testing.h"

namespace freshet::strategy {
namespace {

using namespace std::chrono_literals;

StrategyOptions By(int backup, int servers = 0) {
  StrategyOptions options;
  options.kind = "server";
  options.batch = 36;
  options.backup = backup;
  options.servers = servers;
  return options;
}

struct Ended {
  std::vector<float> weights;
  double loss = 0;
  std::uint64_t rows = 0, shares = 0;  // that it had a part of
};

// `sleeps`: how long a rank takes longer in a step.
using Sleeps = std::function<std::chrono::microseconds(int rank, std::size_t step)>;

std::vector<Ended> Work(const Task& task, int members, const StrategyOptions& options, std::size_t steps,
                        const Sleeps& sleeps) {
  std::vector<Ended> ends(static_cast<std::size_t>(members));
  fabric::RunMembers(members, [&](fabric::Fabric& fabric) {
    const int rank = fabric.rank();
    TestLearner learner(task);
    fabric::Collectives collectives(fabric);
    auto world = learner.World(collectives);
    std::size_t step = 0;
    world.at = [&](std::string_view place) -> Result<void> {
      if (place == "step.computed") std::this_thread::sleep_for(sleeps(rank, step));
      return {};
    };
    const auto strategy = Strategy::Make(options, world).value();
    const data::Batch all = task.rows.batch();
    std::vector<float> scores;
    Ended& end = ends[static_cast<std::size_t>(rank)];
    for (step = 0; step < steps && strategy->has_rows(); ++step) {
      const std::size_t begin = step * strategy->piece() % (all.rows - strategy->piece() + 1);
      const data::Batch piece = all.Slice(begin, begin + strategy->piece()), mine = strategy->Share(piece);
      scores.resize(mine.rows * learner.model->scores());
      const auto made = strategy->Step(piece, mine, scores);
      if (!made.ok()) ADD_FAILURE() << made.error().text;
      end.loss += made.value().value();
      end.rows += mine.rows;
      end.shares += mine.rows > 0 ? 1 : 0;
    }
    const auto ended = strategy->EndEpoch();
    if (!ended.ok()) ADD_FAILURE() << ended.error().text;
    end.weights = learner.Weights();
  });
  return ends;
}

TEST(BackupServer, MakesTheUpdatesOfAllRowsWhoeverIsSlow) {
  constexpr std::size_t kSteps = 15;
  for (const std::string name : {"linear", "fm", "factorization", "kmeans", "perceptron"}) {
    SCOPED_TRACE(name);
    const Task task = MakeTask(name, 2000, 11);
    StrategyOptions whole;
    whole.batch = 36;
    const auto alone = Work(task, 1, whole, kSteps, [](int, std::size_t) { return 0us; });
    std::uint64_t passed_over = 0;
    for (const int servers : {0, 1})
      for (int way = 0; way < 4; ++way) {
        const Sleeps slow[] = {
            [](int, std::size_t) { return 0us; },
            [](int rank, std::size_t) { return rank == 2 ? 3000us : 0us; },
            [](int rank, std::size_t step) { return rank == 0 && step % 3 == 0 ? 3000us : 0us; },
            [](int rank, std::size_t step) { return 1000us * ((rank * 7 + static_cast<int>(step)) % 4); },
        };
        for (const int backup : {1, 3}) {
          SCOPED_TRACE(Str(servers, " servers, way ", way, ", ", backup, " not waited for"));
          const auto ends = Work(task, 4 + servers, By(backup, servers), kSteps, slow[way]);
          double loss = 0;
          std::uint64_t rows = 0;
          for (const Ended& end : ends) {
            EXPECT_EQ(end.weights, ends[0].weights);
            loss += end.loss;
            rows += end.rows;
          }
          passed_over += kSteps - ends[2].shares;
          EXPECT_EQ(rows, kSteps * 36);
          EXPECT_LE(Distance(ends[0].weights, alone[0].weights), 1e-4);
          EXPECT_NEAR(loss, alone[0].loss, 0.02 * std::abs(alone[0].loss));
          if (HasFailure()) return;
        }
      }
    EXPECT_GT(passed_over, 0u);  // who is slow
  }
}

TEST(BackupServer, WithNobodyToBackUpIsTheServer) {
  const Task task = MakeTask("linear", 400, 3);
  EXPECT_EQ(Train(task, 1, By(2), 20).weights, Train(task, 1, By(0), 20).weights);
  EXPECT_EQ(Train(task, 2, By(2, 1), 20).weights, Train(task, 2, By(0, 1), 20).weights);
}

TEST(BackupServer, CodecsThatHoldNothingBackLearnTheSame) {
  const Task task = MakeTask("perceptron", 600, 4);
  StrategyOptions encoded = By(1);
  encoded.codec = "fp16";
  const Trained plain = Train(task, 3, By(0), 40), shorter = Train(task, 3, encoded, 40);
  for (const auto& weights : shorter.weights) EXPECT_EQ(weights, shorter.weights[0]);
  EXPECT_LT(Distance(plain.weights[0], shorter.weights[0]), 1e-2);
}

TEST(BackupServer, RefusesWhatItCannotKeep) {
  const Task task = MakeTask("linear", 40, 1);
  fabric::RunMembers(2, [&](fabric::Fabric& fabric) {
    TestLearner learner(task);
    fabric::Collectives collectives(fabric);
    const auto refused = [&](const auto& change) {
      StrategyOptions options = By(1);
      change(options);
      const auto made = Strategy::Make(options, learner.World(collectives));
      return made.ok() ? "" : ShowOptions(made.error().text);
    };
    EXPECT_EQ(refused([](StrategyOptions& o) { o.synchrony = "bap"; }),
              "backup 1 does not go with synchrony bap, where nobody is waited for; use bsp, or leave it out");
    EXPECT_NE(refused([](StrategyOptions& o) { o.synchrony = "ssp:2"; }).find("only who is far behind"),
              std::string::npos);
    EXPECT_NE(refused([](StrategyOptions& o) { o.whole = false; }).find("others must have the rows"),
              std::string::npos);
    EXPECT_NE(refused([](StrategyOptions& o) { o.codec = "topk"; }).find("use fp16 or bf16"), std::string::npos);
    EXPECT_NE(refused([](StrategyOptions& o) { o.kind = "average"; }).find("is for strategy allreduce and server"),
              std::string::npos);
  });
}

}  // namespace
}  // namespace freshet::strategy
