// What a server learns while nothing arrives: by idleness, by the clock, when asked, and from data sets.

#include <gtest/gtest.h>

#include "deploy/deployment_testing.h"
#include "deploy/recipe.h"

namespace freshet::deploy {
namespace {

DeploymentOptions WithRecipe(World& world, const std::string& recipe, const model::TrainedModel& model) {
  DeploymentOptions options = world.Options("a");
  CHECK(UseRecipe(recipe, model.model->traits(), options).ok());
  return options;
}

// A data set of rows that the stream does not hold: lines of three numbers and a label that follows them.
std::string DatasetText(std::uint64_t rows) {
  base::Random random(3, "data set");
  std::string text = "x1,x2,x3,label\n";
  for (std::uint64_t r = 0; r < rows; ++r) {
    const double a = random.Normal(), b = random.Normal(), c = random.Normal();
    text += Str(a, ",", b, ",", c, ",", a - b + c > 0 ? 1 : 0, "\n");
  }
  return text;
}

void Join(World& world, Deployment& deployment, std::uint64_t rows) {
  world.disk.Write("/set.csv", DatasetText(rows));
  bool joined = false;
  deployment.PostDataset("/set.csv", [&](const Result<std::string>& result) { joined = result.ok(); });
  deployment.Settle();
  ASSERT_TRUE(joined);
}

// The share of rows of the stream that the model gets wrong, none of which it has met.
double ErrorOfStream(const Deployment& deployment) {
  data::Rows rows;
  rows.width = 3;
  rows.ClearRows();
  for (std::uint64_t n = 50'000; n < 50'500; ++n) rows.AppendRow(World::Row(deployment.model(), n).batch(), 0);
  return deployment.models().ErrorRate(0, rows);
}

TEST(QuietDeployment, LearnsWhenAskedByTheClockAndWhenIdleUnderEveryRecipe) {
  for (const std::string& recipe : RecipeNames())
    for (const Reason reason : {Reason::kAsked, Reason::kPeriod, Reason::kIdle}) {
      SCOPED_TRACE(Str(recipe, ": ", Text(reason)));
      World world;
      DeploymentOptions options = WithRecipe(world, recipe, world.Dense());
      options.schedule.max_buffer_size = 100;
      if (reason == Reason::kPeriod) options.schedule.period = std::chrono::minutes(5);
      options.schedule.when_idle = reason == Reason::kIdle;
      options.schedule.stagnation = 0.1;  // rows that a plane divides can be learned better for ever
      const auto deployment = world.Open(options, world.Dense()).value();
      world.SendMany(*deployment, 0, 130);
      const auto iterate = [&] {
        if (reason == Reason::kAsked) deployment->PostIterate([](const auto& done) { EXPECT_TRUE(done.ok()); });
        if (reason == Reason::kPeriod) world.clock.Advance(std::chrono::minutes(6));
        deployment->Settle();
      };
      iterate();  // which leaves nothing in the buffer
      const std::uint64_t steps = deployment->stats().iteration_rows;
      const auto before = World::Fingerprint(*deployment);
      iterate();
      if (reason == Reason::kIdle) {
        EXPECT_GT(steps, 5 * 130u);  // it has gone on until that brought nothing more
        continue;
      }
      EXPECT_GT(deployment->stats().iteration_rows, steps);
      EXPECT_NE(World::Fingerprint(*deployment), before);
    }
}

TEST(QuietDeployment, LearnsADataSetThatIsRegistered) {
  for (const std::string& recipe : RecipeNames()) {
    SCOPED_TRACE(recipe);
    World world;
    const auto deployment = world.Open(WithRecipe(world, recipe, world.Dense()), world.Dense(), {.readers = 1}).value();
    world.SendMany(*deployment, 0, 5);
    Join(world, *deployment, 400);
    EXPECT_GE(deployment->stats().iteration_rows, 400u);
    EXPECT_EQ(deployment->stats().buffered, 0u);
    EXPECT_LT(ErrorOfStream(*deployment), 0.1);
  }
}

TEST(QuietDeployment, DrawsFromRowsThatAreKnownAndDoesNotLearnThemAsNew) {
  World world;
  const DeploymentOptions options = WithRecipe(world, "light", world.Dense());
  auto deployment = world.Open(options, world.Dense()).value();
  const auto before = World::Fingerprint(*deployment);
  world.disk.Write("/set.csv", DatasetText(400));
  bool joined = false;
  deployment->PostDataset(
      std::vector<std::string>{"/set.csv"}, [&](const Result<std::string>& result) { joined = result.ok(); },
      Deployment::Met::kKnown);
  deployment->Settle();
  ASSERT_TRUE(joined);
  EXPECT_EQ(deployment->stats().history, 400u);
  EXPECT_EQ(deployment->stats().iterations, 0u);
  EXPECT_EQ(World::Fingerprint(*deployment), before);
  EXPECT_TRUE(deployment->Close().ok());
  deployment.reset();
  deployment = world.Open(options, world.Dense()).value();
  deployment->Settle();
  EXPECT_EQ(deployment->stats().iterations, 0u);
  deployment->PostIterate([](const auto& done) { EXPECT_TRUE(done.ok()); });
  deployment->Settle();
  EXPECT_GT(deployment->stats().iteration_rows, 0u);
  EXPECT_NE(World::Fingerprint(*deployment), before);
}

TEST(QuietDeployment, LearnsADataSetAlsoWhenItIsAllThereIs) {
  World world;
  const auto deployment = world.Open(WithRecipe(world, "light", world.Dense()), world.Dense(), {.readers = 1}).value();
  Join(world, *deployment, 20);  // fewer than a buffer
  EXPECT_EQ(deployment->stats().iteration_rows, 20u);
  EXPECT_NE(deployment->models().state().moments.Save(), data::Moments(3).Save());
  EXPECT_LT(ErrorOfStream(*deployment), 0.3);
}

TEST(QuietDeployment, LearnsADataSetAfterARestartWhenItWasStoppedBefore) {
  World world;
  const DeploymentOptions options = WithRecipe(world, "light", world.Dense());
  auto deployment = world.Open(options, world.Dense()).value();
  world.disk.Write("/set.csv", DatasetText(400));
  deployment->PostDataset("/set.csv", [](const auto& result) { EXPECT_TRUE(result.ok()); });
  while (!deployment->stats().training) {
    ASSERT_TRUE(deployment->Turn() || (!deployment->stats().training && deployment->background().RunOne()));
  }
  ASSERT_TRUE(deployment->Close().ok());  // the iteration has begun and is given up
  EXPECT_EQ(deployment->stats().iteration_rows, 0u);
  deployment.reset();
  deployment = world.Open(options, world.Dense()).value();
  deployment->Settle();
  EXPECT_EQ(deployment->stats().iteration_rows, 400u);
}

}  // namespace
}  // namespace freshet::deploy
