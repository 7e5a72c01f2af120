// A step that fails, with StrategyOptions::undo.

#include <gtest/gtest.h>

#include "strategy/synchronous.h"
#include "strategy/watched_testing.h"
#include "strategy/worlds_testing.h"

namespace freshet::strategy {
namespace {

// Everything a step may change.
struct Snapshot {
  explicit Snapshot(const TestLearner& learner) : weights(learner.Weights()), step(learner.optimizer->step()) {
    const optimize::Parameters& kept = learner.optimizer->state();
    for (std::size_t b = 0; b < kept.blocks(); ++b) {
      const std::vector<float> values = kept.Gather(b);
      state.insert(state.end(), values.begin(), values.end());
    }
  }
  bool operator==(const Snapshot&) const = default;

  std::vector<float> weights, state;
  std::uint64_t step = 0;
};

class AFailedStep : public testing::TestWithParam<std::string> {};

// Rank 1 gives up in the midst of its third step: after what is learned by looking, and after some updates of its own
// where a strategy makes them.
TEST_P(AFailedStep, LeavesEverythingAsItWas) {
  for (const std::string& kind : Synchronous::Kinds()) {
    for (const bool whole : {true, false}) {
      SCOPED_TRACE(Str(kind, whole ? ", rows of all" : ", rows of its own"));
      Task task = MakeTask(GetParam(), 200, 7);
      task.optimizer.kind = GetParam() == "linear" ? "adaptive" : "adam";
      StrategyOptions options;
      options.kind = kind;
      options.batch = 12;
      options.every = 2;
      options.whole = whole;
      options.undo = true;
      fabric::RunMembers(2, [&](fabric::Fabric& fabric) {
        TestLearner learner(task);
        std::size_t gradients = 0, last = SIZE_MAX;
        const Watched watched(*learner.model, [&](const data::Batch&) {
          if (++gradients == last) fabric.Abort({Code::kIo, "enough"});
        });
        fabric::Collectives collectives(fabric);
        const Strategy::World world{collectives,        watched,        *learner.parameters,
                                    *learner.optimizer, learner.memory, learner.clock};
        const auto strategy = Strategy::Make(options, world).value();
        std::vector<float> scores(200 * learner.model->scores());
        const auto step = [&](std::size_t number) {
          const std::size_t rows = strategy->piece(), begin = number * rows;
          const data::Batch piece = task.rows.batch().Slice(begin, begin + rows), mine = strategy->Share(piece);
          return strategy->Step(piece, mine, std::span(scores).first(mine.rows * learner.model->scores()));
        };
        ASSERT_TRUE(step(0).ok());
        ASSERT_TRUE(step(1).ok());
        const Snapshot before(learner);
        EXPECT_GT(before.step, 0u);
        const std::size_t by_step = gradients / 2;
        if (fabric.rank() == 1) last = gradients + by_step;  // the last of the step
        const auto failed = step(2);
        ASSERT_FALSE(failed.ok());
        EXPECT_EQ(failed.error().code, Code::kPeerLost);
        EXPECT_TRUE(Snapshot(learner) == before);
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tasks, AFailedStep,
                         testing::Values("linear", "table", "factorization", "kmeans", "perceptron"),
                         [](const auto& chosen) { return chosen.param; });

}  // namespace
}  // namespace freshet::strategy
