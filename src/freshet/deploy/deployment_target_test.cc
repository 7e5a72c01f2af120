// A model of numbers that begins with none of them: what it makes of prices.

#include "deploy/deployment_testing.h"

namespace freshet::deploy {
namespace {

TEST(DeploymentTarget, AColdModelLearnsPricesAndSaysThemInTheirUnits) {
  World world;
  for (const Method method : {Method::kBaselinePlus, Method::kContinuous, Method::kVelox}) {
    SCOPED_TRACE(Name(method));
    DeploymentOptions options = world.Options();
    options.method = method;
    options.retrain_rows = 200;
    options.retrain_epochs = 2;
    Deployment::Doors doors;
    doors.readers = 1;
    const auto deployment = world.Open(options, world.Prices(), doors).value();
    World::SendMany(*deployment, 0, 1200);  // more than the target follows
    EXPECT_FALSE(deployment->models().state().target.moving());
    EXPECT_LT(std::sqrt(deployment->stats().quality.recent), 20'000);  // prices are 180,000 ± 69,000

    data::Rows rows = World::Row(deployment->model(), 7777);
    const float price = rows.labels[0];
    model::Workspace workspace;
    std::vector<float> scores;
    deployment->models().Predict(0, rows, workspace, scores);
    EXPECT_NEAR(scores[0], price, 20'000);
    rows = World::Row(deployment->model(), 7777);
    EXPECT_NEAR(std::sqrt(deployment->models().ErrorRate(0, rows)), std::abs(scores[0] - price), 1);
  }
}

TEST(DeploymentTarget, AModelThatWasTrainedKeepsItsScale) {
  World world;
  model::TrainedModel start = world.Prices();
  start.description.target = data::Target(100'000, 50'000);
  const auto deployment = world.Open(world.Options(), std::move(start)).value();
  World::SendMany(*deployment, 0, 100);
  EXPECT_EQ(deployment->models().state().target, data::Target(100'000, 50'000));
}

TEST(DeploymentTarget, TheSameRowsOneByOneOrTogetherGiveTheSamePredictions) {
  World world;
  const model::TrainedModel trained = world.Prices();
  const auto make = [&] {
    auto state = State::Make(*trained.model, {}, world.memory, trained.description.moments).value();
    state->target = trained.description.target;
    return state;
  };
  const auto together = make(), apart = make();
  data::Rows all = World::Row(*trained.model, 0);
  for (std::uint64_t n = 1; n < 30; ++n) all.AppendRow(World::Row(*trained.model, n).batch(), 0);
  const std::vector<float> labels(all.labels.span().begin(), all.labels.span().end());
  std::vector<float> scores, one;
  const double loss = together->Learn(*trained.model, all, scores).value();
  EXPECT_TRUE(std::equal(labels.begin(), labels.end(), all.labels.span().begin()));  // they stay as they are
  double sum = 0;
  for (std::uint64_t n = 0; n < 30; ++n) {
    data::Rows row = World::Row(*trained.model, n);
    sum += apart->Learn(*trained.model, row, one).value();
    EXPECT_EQ(one[0], scores[n]);
  }
  EXPECT_NEAR(sum / loss, 1, 1e-9);
}

}  // namespace
}  // namespace freshet::deploy
