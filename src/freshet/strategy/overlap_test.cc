// A step that fails while gradients travel leaves nothing behind that uses its memory.

#include <gtest/gtest.h>

#include "strategy/worlds_testing.h"

namespace freshet::strategy {
namespace {

// What is lost is found out when all has been computed, with buckets on their way on the fabric's thread.
TEST(Overlap, AFailedStepWaitsForWhatTravelsBeforeItsMemoryGoes) {
  const Task task = MakeTask("perceptron", 200, 21);
  for (int time = 0; time < 20; ++time)
    fabric::RunMembers(3, [&](fabric::Fabric& fabric) {
      TestLearner learner(task);
      fabric::Collectives collectives(fabric);
      auto world = learner.World(collectives);
      StrategyOptions options;
      options.batch = 30;
      options.bucket_bytes = 64;
      options.undo = true;
      const bool fails = fabric.rank() == 1;
      world.at = [&](std::string_view place) -> Result<void> {
        if (!fails || place != "step.computed") return {};
        return Error{Code::kIo, "killed"};
      };
      auto strategy = Strategy::Make(options, world).value();
      const data::Batch piece = task.rows.batch().Slice(0, 30), mine = strategy->Share(piece);
      std::vector<float> scores(mine.rows * learner.model->scores());
      const auto made = strategy->Step(piece, mine, scores);
      EXPECT_FALSE(made.ok());
      if (fails) fabric.Abort({Code::kIo, "killed"});
      strategy.reset();  // and its memory
    });
}

}  // namespace
}  // namespace freshet::strategy
