// What a deployment tells of how good it is and was: figures of classifiers, its chronicle, rows that a version has
// learned, and what training waits for.

#include "deploy/deployment_testing.h"

namespace freshet::deploy {
namespace {

using std::chrono::seconds;

class AServingDeployment : public testing::Test {
 protected:
  std::unique_ptr<Deployment> Open() { return world.Open(options, world.Dense(), {.readers = 1}).value(); }
  // Ten rows in each ten seconds.
  void Live(Deployment& deployment, std::uint64_t first, std::uint64_t rows) {
    for (std::uint64_t n = first; n < first + rows; ++n) {
      world.clock.Advance(seconds(1));
      ASSERT_TRUE(World::Send(deployment, n).ok());
    }
  }
  void RollBack(Deployment& deployment, std::uint64_t version, bool relearn) {
    deployment.PostRollBack(version, {}, relearn, [](const Result<std::string>& done) { CHECK(done.ok()); });
    deployment.Settle();
  }

  World world;
  DeploymentOptions options = world.Options("a");
};

TEST_F(AServingDeployment, TellsHowGoodItsProbabilitiesAreAlsoAfterARestart) {
  double area = 0, loss = 0;
  {
    const auto deployment = Open();
    EXPECT_TRUE(deployment->class_figures().empty());
    Live(*deployment, 0, 400);
    const auto figures = deployment->class_figures();
    ASSERT_EQ(figures.size(), 2u);
    area = figures[0].auc.value();
    loss = figures[0].log_loss.value();
    EXPECT_GT(area, 0.9);
    EXPECT_LT(loss, 0.5);
    ASSERT_EQ(figures[0].classes.size(), 2u);
    const double error = deployment->stats().quality.mean(), one = figures[1].classes[1].share;
    const double missed = one * (1 - *figures[1].classes[1].recall) + (1 - one) * (1 - *figures[1].classes[0].recall);
    EXPECT_NEAR(missed, error, 0.01) << "those of each class that were missed are the error";
  }  // as if killed
  const auto deployment = Open();
  EXPECT_EQ(deployment->class_figures()[0].auc.value(), area);
  EXPECT_EQ(deployment->class_figures()[0].log_loss.value(), loss);
}

TEST_F(AServingDeployment, OfNumbersHasNoFiguresOfClasses) {
  const auto deployment = world.Open(options, world.Prices(), {.readers = 1}).value();
  Live(*deployment, 0, 30);
  EXPECT_TRUE(deployment->class_figures().empty());
  EXPECT_EQ(deployment->chronicle().back().auc, -1);
}

TEST_F(AServingDeployment, KnowsItsPastAfterItWasKilled) {
  options.version_rows = 100;
  std::vector<Chronicle::Point> before;
  {
    const auto deployment = Open();
    Live(*deployment, 0, 530);
    before = deployment->chronicle();
  }
  world.clock.Advance(seconds(60));
  const auto deployment = Open();
  const auto after = deployment->chronicle();
  ASSERT_GE(before.size(), 50u);
  ASSERT_GE(after.size() + 1, before.size());
  for (std::size_t i = 0; i + 1 < before.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(after[i].time), static_cast<double>(before[i].time), 2);
    EXPECT_NEAR(after[i].recent, before[i].recent, 0.05) << i;
    EXPECT_NEAR(after[i].rows, before[i].rows, 10);
  }
  EXPECT_GT(after.back().iterations, 0u);
  EXPECT_EQ(deployment->stats().iterations, 530u / 50);
  EXPECT_GT(deployment->stats().iteration_rows, 0u) << "it counts with those of before";
}

TEST_F(AServingDeployment, SaysHowManyRowsAVersionHasLearnedAfterARollBack) {
  options.method = Method::kBaselinePlus;
  options.version_rows = 40;
  const auto deployment = Open();
  Live(*deployment, 0, 100);
  const auto second = deployment->versions()->list().at(2);
  EXPECT_EQ(second.learned, 80u);
  RollBack(*deployment, 0, false);
  EXPECT_EQ(deployment->versions()->list().back().origin, "roll-back");
  EXPECT_EQ(deployment->versions()->list().back().learned, 0u);
  EXPECT_EQ(deployment->stats().model_rows, 0u);
  EXPECT_EQ(deployment->stats().learned, 100u) << "of all that ever were";
  Live(*deployment, 100, 10);
  EXPECT_EQ(deployment->stats().model_rows, 10u);
  RollBack(*deployment, second.id, true);
  EXPECT_EQ(deployment->versions()->list().back().learned, 110u) << "those since were learned again";
}

TEST_F(AServingDeployment, CountsTheRowsOfARolledBackModelOnAfterARestart) {
  options.method = Method::kBaselinePlus;
  options.version_rows = 40;
  {
    const auto deployment = Open();
    Live(*deployment, 0, 100);
    RollBack(*deployment, 0, false);
    Live(*deployment, 100, 7);
  }
  const auto deployment = Open();
  EXPECT_EQ(deployment->stats().model_rows, 7u);
  EXPECT_EQ(deployment->stats().roll_backs, 1u);
}

TEST_F(AServingDeployment, OfVeloxSaysWhenItRetrains) {
  options.method = Method::kVelox;
  options.retrain_rows = 300;
  const auto deployment = Open();
  Live(*deployment, 0, 120);
  EXPECT_EQ(deployment->stats().scheduler, "waiting for data: 120 of 300 rows have come since the last retraining");
}

}  // namespace
}  // namespace freshet::deploy
