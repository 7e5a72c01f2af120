#include "deploy/deployment.h"

#include "deploy/deployment_testing.h"

namespace freshet::deploy {
namespace {

using Start = model::TrainedModel (*)(World&);
model::TrainedModel Dense(World& world) { return world.Dense(); }
model::TrainedModel Sparse(World& world) { return world.Sparse(); }
model::TrainedModel Ratings(World& world) { return world.Ratings(); }

class DeploymentOf : public testing::TestWithParam<Start> {
 protected:
  World world;
  model::TrainedModel Model() { return GetParam()(world); }
};
INSTANTIATE_TEST_SUITE_P(EveryModel, DeploymentOf, testing::Values(Dense, Sparse, Ratings));

TEST_P(DeploymentOf, LearnsFromAStreamAndRunsIterations) {
  const auto deployment = world.Open(world.Options(), Model()).value();
  world.SendMany(*deployment, 0, 500);
  const Stats stats = deployment->stats();
  EXPECT_EQ(stats.learned, 500u);
  EXPECT_EQ(stats.iterations, 10u);
  EXPECT_GT(stats.iteration_rows, 500u);
  EXPECT_LT(stats.quality.recent, 2.0);
}

TEST_P(DeploymentOf, GoesOnExactlyWhereTheLogEnds) {
  const auto never_stopped = world.Open(world.Options("a"), Model()).value();
  world.SendMany(*never_stopped, 0, 330);
  for (const std::uint64_t stop : {1u, 49u, 50u, 51u, 120u, 329u}) {
    SCOPED_TRACE(stop);
    const std::string name = Str("b", stop);
    {
      const auto first = world.Open(world.Options(name), Model()).value();
      world.SendMany(*first, 0, stop);
    }  // no Close: as after kill -9
    const auto second = world.Open(world.Options(name), Model()).value();
    second->Settle();
    world.SendMany(*second, stop, 330 - stop);
    EXPECT_EQ(World::Fingerprint(*second), World::Fingerprint(*never_stopped));
  }
}

TEST_P(DeploymentOf, IsRebuiltBitForBitFromTheFirstRecord) {
  DeploymentOptions options = world.Options("a");
  options.version_rows = 70;
  std::vector<double> expected;
  {
    const auto deployment = world.Open(options, Model()).value();
    world.SendMany(*deployment, 0, 400);
    expected = World::Fingerprint(*deployment);
  }
  world.KeepOnlyTheFirstVersion(options.directory);
  const auto rebuilt = world.Open(options, Model()).value();
  EXPECT_EQ(World::Fingerprint(*rebuilt), expected);
}

TEST(Deployment, ReportsDriftWhateverTheMethodAndLeavesAloneWhatDoesNotLearn) {
  for (const std::string& method : MethodNames()) {
    SCOPED_TRACE(method);
    World world;
    DeploymentOptions options = world.Options("a");
    options.method = ParseMethod(method).value();
    options.drift_keep = 0.1;
    options.drift_forget = true;
    auto deployment = world.Open(options, world.Dense()).value();
    const auto send = [&](std::uint64_t n, float label) {
      data::Rows rows = World::Row(deployment->model(), n);
      rows.labels[0] = label;
      deployment->PostLearn(std::move(rows), {}, {}, [](const auto& reply) { EXPECT_TRUE(reply.ok()); });
      deployment->Settle();
    };
    for (std::uint64_t n = 0; n < 400; ++n) send(n, 0);  // what a model that has learned nothing says
    EXPECT_EQ(deployment->stats().drifts, 0u);
    for (std::uint64_t n = 400; n < 600; ++n) send(n, 1);
    EXPECT_EQ(deployment->stats().drifts, 1u);
    const auto before = World::Fingerprint(*deployment);
    deployment.reset();
    deployment = world.Open(options, world.Dense()).value();
    EXPECT_EQ(World::Fingerprint(*deployment), before);
  }
}

TEST(Deployment, KnowsWhatWasRatedBeforeItWasDeployed) {
  World world;
  const auto start = [&](std::vector<std::string> users) {
    model::TrainedModel ratings = world.Ratings();
    for (const std::string& user : users) ratings.description.dictionaries[0].Add(user);
    for (const std::string item : {"i1", "i2", "i3"}) ratings.description.dictionaries[1].Add(item);
    ratings.rated = model::Rated::Unpack(std::string("\x02\x00\x02\x01\x01", 5)).value();
    return ratings;
  };
  Deployment::Doors doors;
  doors.readers = 1;
  const auto seen = [](const Deployment& deployment, const std::string& user) {
    return deployment.SeenBy(deployment.models().description().dictionaries[0].Find(user));
  };
  {
    const auto deployment = world.Open(world.Options("a"), start({"ann", "bob"}), doors).value();
    EXPECT_EQ(seen(*deployment, "ann"), (std::vector<std::uint32_t>{0, 2}));
    EXPECT_EQ(seen(*deployment, "bob"), (std::vector<std::uint32_t>{1}));
    world.SendMany(*deployment, 0, 10);
  }
  // Also after a restart, and by name: the file may have been made anew.
  const auto deployment = world.Open(world.Options("a"), start({"bob", "nobody"}), doors).value();
  EXPECT_EQ(seen(*deployment, "bob"), (std::vector<std::uint32_t>{0, 2}));
  EXPECT_TRUE(seen(*deployment, "ann").empty());
}

}  // namespace
}  // namespace freshet::deploy
