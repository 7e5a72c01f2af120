// Rows out of all proportion: weights, labels and values that would leave a model of no numbers, and times to come.

#include <cmath>
#include <limits>

#include "deploy/deployment.h"
#include "deploy/deployment_testing.h"

namespace freshet::deploy {
namespace {

struct Case {
  const char* name;
  model::TrainedModel (*model)(World&);
  void (*change)(data::Rows& row);
};
const Case kCases[] = {
    {"a weight", [](World& w) { return w.Dense(); }, [](data::Rows& row) { row.weights.Append(3e38f); }},
    {"a weight of a sparse row", [](World& w) { return w.Sparse(); },
     [](data::Rows& row) { row.weights.Append(3e38f); }},
    {"a value", [](World& w) { return w.Sparse(); }, [](data::Rows& row) { row.values[0] = -3e38f; }},
    {"a label", [](World& w) { return w.Prices(); }, [](data::Rows& row) { row.labels[0] = 3e38f; }},
    {"a rating", [](World& w) { return w.Ratings(); }, [](data::Rows& row) { row.labels[0] = 3e38f; }},
};

TEST(ExtremeRows, AreSetAsideAndTheModelStaysAsItWas) {
  for (const Case& c : kCases)
    for (const char* const rule : {"sgd", "adagrad", "adam"})
      for (const bool first : {false, true}) {
        SCOPED_TRACE(Str(c.name, " with ", rule, first ? ", first of all" : ""));
        World world;
        DeploymentOptions options = world.Options("a");
        options.method = Method::kBaselinePlus;
        options.optimizer.kind = rule;
        options.version_rows = 0;
        auto deployment = world.Open(options, c.model(world)).value();
        if (!first) world.SendMany(*deployment, 0, 30);
        const auto weights = [&] { return deployment->models().state().parameters.Gather(0); };
        std::vector<data::NewName> names;
        data::Rows row = World::Row(deployment->model(), 1, &names);
        c.change(row);
        std::optional<LearnReply> reply;
        const auto before = weights();
        deployment->PostLearn(std::move(row), std::move(names), {},
                              [&](const auto& answer) { reply = answer.value(); });
        deployment->Settle();
        ASSERT_EQ(reply->accepted, 1u);
        EXPECT_EQ(deployment->stats().set_aside, 1u);
        EXPECT_TRUE(world.Said("rows set aside"));
        if (!first) {
          EXPECT_EQ(weights(), before);
        }
        world.SendMany(*deployment, 30, 30);
        EXPECT_TRUE(deployment->models().state().parameters.AllFinite());
        EXPECT_TRUE(deployment->models().state().optimizer->state().AllFinite());
        EXPECT_FALSE(deployment->stats().diverged);
        EXPECT_EQ(deployment->stats().set_aside, 1u);
        const auto expected = World::Fingerprint(*deployment);
        deployment.reset();
        EXPECT_EQ(World::Fingerprint(*world.Open(options, c.model(world)).value()), expected);
      }
}

TEST(ExtremeRows, LargeOnesThatCanBeLearnedAre) {
  World world;
  const auto deployment = world.Open(world.Options(), world.Prices()).value();
  for (std::uint64_t n = 0; n < 50; ++n) {
    data::Rows row = World::Row(deployment->model(), n);
    row.labels[0] *= 1e9f;  // of the order of 1e14, as the target will be
    row.weights.Append(2e9f);
    deployment->PostLearn(std::move(row), {}, {}, [](const auto&) {});
    deployment->Settle();
  }
  EXPECT_EQ(deployment->stats().set_aside, 0u);
  EXPECT_NEAR(deployment->models().state().target.mean() / 1.8e14, 1, 0.5);
}

TEST(ExtremeRows, TimesInTheFutureKeepNothingLongerThanTheirDay) {
  constexpr std::int64_t kDay = 86'400;
  for (const bool restarts : {false, true}) {
    SCOPED_TRACE(restarts ? "with restarts" : "");
    World world;
    DeploymentOptions options = world.Options("a");
    options.method = Method::kBaselinePlus;
    options.version_rows = 10;
    options.journal.segment_bytes = 400;
    options.journal.retain_seconds = 2 * kDay;
    auto deployment = world.Open(options, world.Dense()).value();
    world.clock.Advance(std::chrono::hours(24 * 365));
    for (std::uint64_t n = 0; n < 200; ++n) {
      world.clock.Advance(std::chrono::hours(1));
      data::Rows row = World::Row(deployment->model(), n);
      row.times.Append(n % 3 == 0 ? std::numeric_limits<std::int64_t>::max() : 1'700'000'000'000);
      deployment->PostLearn(std::move(row), {}, {}, [](const auto& reply) { EXPECT_TRUE(reply.ok()); });
      deployment->Settle();
      if (!restarts || n % 20 != 19) continue;
      deployment.reset();
      deployment = world.Open(options, world.Dense()).value();
    }
    EXPECT_LT(deployment->stats().history, 100u);
    EXPECT_GT(deployment->stats().history, 40u);
  }
}

}  // namespace
}  // namespace freshet::deploy
