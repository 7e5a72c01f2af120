// Where the time of a step went, as the step table tells it.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/simulated_clock.h"
#include "strategy/synchronous.h"
#include "strategy/watched_testing.h"
#include "strategy/worlds_testing.h"

namespace freshet::strategy {
namespace {

// Rank 0 computes for ten seconds, by a clock that all share, once the other has begun its exchange.
TEST(StepTimes, WaitingForAStragglerIsNoExchange) {
  constexpr std::size_t kSteps = 5;
  constexpr double kSlow = 10;
  for (const std::string& kind : Synchronous::Kinds()) {
    SCOPED_TRACE(kind);
    const Task task = MakeTask("table", 400, 1);
    base::ManualClock clock;
    std::atomic<std::uint64_t> computing{0};  // by rank 1: gradients begun
    std::atomic<std::uint64_t> before{0};     // what it had sent then
    std::atomic<const fabric::Fabric*> other{nullptr};
    std::vector<StepTimes> times(2);
    fabric::RunMembers(2, [&](fabric::Fabric& fabric) {
      const bool slow = fabric.rank() == 0;
      if (!slow) other = &fabric;
      TestLearner learner(task);
      std::uint64_t gradients = 0;
      const Watched watched(*learner.model, [&](const data::Batch&) {
        ++gradients;
        if (!slow) {
          before = fabric.bytes_sent();
          computing = gradients;
          return;
        }
        const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while ((computing < gradients || other.load()->bytes_sent() == before) &&
               std::chrono::steady_clock::now() < patience)
          std::this_thread::yield();
        clock.Advance(std::chrono::seconds(10));
      });
      fabric::Collectives::Options how;
      how.algorithm = fabric::Algorithm::kCentral;  // the other sends first
      fabric::Collectives collectives(fabric, how);
      StrategyOptions options;
      options.kind = kind;
      options.every = 1;
      const auto strategy = Strategy::Make(options, {collectives, watched, *learner.parameters, *learner.optimizer,
                                                     learner.memory, clock})
                                .value();
      std::vector<float> scores(options.batch);
      for (std::size_t step = 0; step < kSteps; ++step) {
        const data::Batch piece = task.rows.batch().Slice(0, strategy->piece());
        const data::Batch mine = strategy->Share(piece);
        ASSERT_TRUE(strategy->Step(piece, mine, std::span(scores).first(mine.rows)).ok());
      }
      ASSERT_TRUE(strategy->EndEpoch().ok());
      times[static_cast<std::size_t>(fabric.rank())] = strategy->times();
    });
    EXPECT_DOUBLE_EQ(times[0].compute, kSteps * kSlow);
    EXPECT_DOUBLE_EQ(times[0].wait + times[0].exchange, 0);
    EXPECT_DOUBLE_EQ(times[1].wait, kSteps * kSlow);
    EXPECT_DOUBLE_EQ(times[1].compute + times[1].exchange, 0);
  }
}

}  // namespace
}  // namespace freshet::strategy
