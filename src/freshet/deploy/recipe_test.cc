#include "deploy/recipe.h"

#include <algorithm>

#include "deploy/deployment_testing.h"

namespace freshet::deploy {
namespace {

// A stream of dense rows whose labels turn over at row 600.
void Send(Deployment& deployment, std::uint64_t first, std::uint64_t end) {
  for (std::uint64_t n = first; n < end; ++n) {
    data::Rows rows = World::Row(deployment.model(), n);
    if (n >= 600) rows.labels[0] = 1 - rows.labels[0];
    deployment.PostLearn(std::move(rows), {}, {}, [](const Result<LearnReply>& reply) { ASSERT_TRUE(reply.ok()); });
    deployment.Settle();
  }
}

DeploymentOptions OptionsFor(World& world, const std::string& recipe, const std::string& name = "") {
  DeploymentOptions options = world.Options(name);
  options.optimizer.kind = "adaptive";
  options.optimizer.schedule.rate = 0.3;
  if (!name.empty()) options.schedule.max_buffer_size = 150;
  CHECK(UseRecipe(recipe, world.Dense().model->traits(), options).ok());
  return options;
}

TEST(Recipe, IsLightForLinearModelsAndHeavyForFactorization) {
  World world;
  EXPECT_EQ(RecipeFor(world.Dense().model->traits()), "light");
  EXPECT_EQ(RecipeFor(world.Ratings().model->traits()), "heavy");
  DeploymentOptions options;
  EXPECT_EQ(UseRecipe("medium", {}, options).error().text,
            "recipe 'medium': expected one of light, steady, heavy, paper");
}

TEST(Recipe, OfRatingsDoesNotAnswerDrift) {
  World world;
  for (const std::string& name : RecipeNames()) {
    DeploymentOptions options;
    ASSERT_TRUE(UseRecipe(name, world.Ratings().model->traits(), options).ok());
    EXPECT_EQ(options.drift, "none");
    EXPECT_EQ(options.drift_keep, 1);
  }
}

TEST(Recipe, VisitsAsManyRowsAsItSays) {
  World world;
  std::uint64_t light = 0, heavy = 0;
  for (std::uint64_t old_rows = 0; old_rows < 500; old_rows += 50) {
    light += std::min<std::uint64_t>(old_rows, 50);
    heavy += 50 + std::min<std::uint64_t>(old_rows, 6 * 50);
  }
  for (const auto& [name, steps] : {std::pair("light", light), std::pair("heavy", heavy)}) {
    DeploymentOptions options = OptionsFor(world, name);
    options.drift = "none";
    const auto deployment = world.Open(options, world.Dense()).value();
    Send(*deployment, 0, 500);
    EXPECT_EQ(deployment->stats().iterations, 10u);
    EXPECT_EQ(deployment->stats().iteration_rows, steps) << name;
  }
}

TEST(DriftAnswer, RecoversFromATurnFasterThanWithout) {
  World world;
  double wrong[2];
  for (const bool answers : {false, true}) {
    DeploymentOptions options = OptionsFor(world, "light");
    if (!answers) options.drift_keep = 1, options.drift_forget = false;
    const auto deployment = world.Open(options, world.Dense()).value();
    Send(*deployment, 0, 800);
    const double before = deployment->stats().quality.sum;
    Send(*deployment, 800, 1200);
    EXPECT_GT(deployment->stats().drifts, 0u);
    wrong[answers] = deployment->stats().quality.sum - before;
  }
  EXPECT_LT(wrong[true], 0.8 * wrong[false]);
}

TEST(DriftAnswer, SurvivesARestartAtAnyMoment) {
  World world;
  const auto never_stopped = world.Open(OptionsFor(world, "light", "a"), world.Dense()).value();
  Send(*never_stopped, 0, 800);
  ASSERT_GT(never_stopped->stats().drifts, 0u);
  for (const std::uint64_t stop : {620u, 640u, 656u, 700u}) {
    SCOPED_TRACE(stop);
    const DeploymentOptions options = OptionsFor(world, "light", Str("b", stop));
    {
      const auto first = world.Open(options, world.Dense()).value();
      Send(*first, 0, stop);
    }  // no Close: as after kill -9
    const auto second = world.Open(options, world.Dense()).value();
    second->Settle();
    Send(*second, stop, 800);
    EXPECT_EQ(World::Fingerprint(*second), World::Fingerprint(*never_stopped));
  }
}

TEST(DriftAnswer, IsReplayedFromTheFirstRecord) {
  World world;
  const DeploymentOptions options = OptionsFor(world, "heavy", "a");
  std::vector<double> expected;
  {
    const auto deployment = world.Open(options, world.Dense()).value();
    Send(*deployment, 0, 800);
    ASSERT_GT(deployment->stats().drifts, 0u);
    expected = World::Fingerprint(*deployment);
  }
  world.KeepOnlyTheFirstVersion(options.directory);
  EXPECT_EQ(World::Fingerprint(*world.Open(options, world.Dense()).value()), expected);
}

// A drift that is found while an iteration runs changes what serves and the copy in training alike.
TEST(DriftAnswer, ReachesTheCopyThatIsBeingTrained) {
  World world;
  DeploymentOptions options = OptionsFor(world, "light", "a");
  std::vector<double> expected;
  {
    const auto deployment = world.Open(options, world.Dense()).value();
    Send(*deployment, 0, 600);
    std::uint64_t n = 600;
    const auto add = [&](std::uint64_t rows) {
      for (const std::uint64_t end = n + rows; n < end; ++n) {
        data::Rows row = World::Row(deployment->model(), n);
        row.labels[0] = 1 - row.labels[0];
        deployment->PostLearn(std::move(row), {}, {}, [](const Result<LearnReply>&) {});
        deployment->Turn();  // and nobody trains
      }
    };
    while (!deployment->stats().training) add(1);
    const std::uint64_t before = deployment->stats().drifts;
    while (deployment->stats().drifts == before) add(1);
    ASSERT_TRUE(deployment->stats().training);
    deployment->Settle();
    expected = World::Fingerprint(*deployment);
  }
  EXPECT_EQ(World::Fingerprint(*world.Open(options, world.Dense()).value()), expected);
}

}  // namespace
}  // namespace freshet::deploy
