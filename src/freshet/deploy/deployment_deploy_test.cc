// Model files that take over from what a deployment has learned.

#include <gtest/gtest.h>

#include "deploy/deployment_testing.h"
#include "deploy/weights_testing.h"

namespace freshet::deploy {
namespace {

// The model of World::Dense after training elsewhere: other weights, other moments.
model::TrainedModel Retrained(World& world) {
  model::TrainedModel trained = world.Dense();
  for (std::size_t b = 0; b < trained.parameters.blocks(); ++b) {
    std::vector<float> values = trained.parameters.Gather(b);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.5f - 0.25f * static_cast<float>(i);
    trained.parameters.Scatter(b, values);
  }
  data::Rows rows;
  rows.width = 3;
  rows.ClearRows();
  for (std::uint64_t n = 900; n < 950; ++n) rows.AppendRow(World::Row(*trained.model, n).batch(), 0);
  std::vector<float> scores;
  optimize::OptimizerOptions rule;
  auto state = State::Make(*trained.model, rule, world.memory, trained.description.moments).value();
  CHECK(state->Learn(*trained.model, rows, scores).ok());
  trained.description.moments = state->moments;
  return trained;
}

class DeployedModel : public testing::Test {
 protected:
  DeployedModel() {
    options.method = Method::kBaselinePlus;  // so that weights depend on the rows alone
    auto deployment = world.Open(options, world.Dense()).value();
    EXPECT_FALSE(deployment->start_ignored());
    world.SendMany(*deployment, 0, 40);
    learned = Weights(*deployment);
    EXPECT_TRUE(deployment->Close().ok());
  }
  // What a server that was started from that file knows after the rows that were sent.
  std::vector<float> TaughtFromTheStart() {
    DeploymentOptions other = options;
    other.directory = "/other";
    other.replace = Replace::kNo;
    const auto deployment = world.Open(other, Retrained(world)).value();
    world.SendMany(*deployment, 0, 40);
    return Weights(*deployment);
  }
  World world;
  DeploymentOptions options = world.Options("a");
  std::vector<float> learned;
};

// A file that also holds what its training has summed up, by the rule that deployments here have.
model::TrainedModel WithSums(World& world, const std::string& rule) {
  model::TrainedModel trained = world.Dense();
  optimize::OptimizerOptions options;
  options.kind = rule;
  auto state = State::Make(*trained.model, options, world.memory, trained.description.moments).value();
  std::vector<float> scores;
  for (std::uint64_t n = 900; n < 950; ++n) {
    data::Rows row = World::Row(*trained.model, n);
    CHECK(state->Learn(*trained.model, row, scores).ok());
  }
  trained.parameters.CopyFrom(state->parameters);
  trained.description.moments = state->moments;
  trained.sums = model::Sums::Of(state->parameters, *state->optimizer);
  return trained;
}

TEST_F(DeployedModel, GoesOnWithWhatItsTrainingHasSummedUp) {
  const auto sums_of = [](const Deployment& deployment) {
    const State& state = deployment.models().state();
    return model::Sums::Of(state.parameters, *state.optimizer);
  };
  const model::TrainedModel trained = WithSums(world, "adagrad");
  ASSERT_EQ(trained.sums->step, 50u);
  std::vector<float> all;
  for (const auto& block : trained.sums->blocks) all.insert(all.end(), block.values.begin(), block.values.end());
  ASSERT_NE(all, std::vector<float>(all.size(), 0.0f));
  const auto expect_same = [&](const model::Sums& sums) {
    EXPECT_EQ(sums.step, 50u);
    ASSERT_EQ(sums.blocks.size(), trained.sums->blocks.size());
    for (std::size_t b = 0; b < sums.blocks.size(); ++b)
      EXPECT_EQ(sums.blocks[b].values, trained.sums->blocks[b].values);
  };
  DeploymentOptions other = options;
  other.directory = "/other";
  expect_same(sums_of(*world.Open(other, WithSums(world, "adagrad")).value()));
  expect_same(sums_of(*world.Open(other, WithSums(world, "adagrad")).value()));  // from its first version
  options.replace = Replace::kYes;
  expect_same(sums_of(*world.Open(options, WithSums(world, "adagrad")).value()));
  expect_same(sums_of(*world.Open(options, WithSums(world, "adagrad")).value()));
  other.directory = "/third";
  EXPECT_EQ(sums_of(*world.Open(other, WithSums(world, "adam")).value()).step, 0u);  // of no use to another rule
}

TEST_F(DeployedModel, IsIgnoredAndSaidToBeUnlessAskedFor) {
  EXPECT_FALSE(world.Open(options, world.Dense()).value()->start_ignored());
  const auto deployment = world.Open(options, Retrained(world)).value();
  EXPECT_TRUE(deployment->start_ignored());
  EXPECT_EQ(Weights(*deployment), learned);
}

TEST_F(DeployedModel, TakesOverAtTheStartAsANewVersionOnce) {
  options.replace = Replace::kYes;
  auto deployment = world.Open(options, Retrained(world)).value();
  deployment->Settle();
  EXPECT_FALSE(deployment->start_ignored());
  std::vector<float> expected;
  const model::TrainedModel trained = Retrained(world);
  for (std::size_t b = 0; b < trained.parameters.blocks(); ++b)
    for (const float value : trained.parameters.Gather(b)) expected.push_back(value);
  EXPECT_EQ(Weights(*deployment), expected);
  EXPECT_EQ(deployment->models().state().moments.Save(), trained.description.moments.Save());
  EXPECT_EQ(deployment->versions()->list().back().origin, "deployed");
  world.SendMany(*deployment, 40, 10);
  const auto before = World::Fingerprint(*deployment);
  const std::uint64_t sequence = deployment->log().next_sequence();
  for (const bool rebuilt : {false, true}) {
    deployment.reset();
    if (rebuilt) world.KeepOnlyTheFirstVersion(options.directory);
    deployment = world.Open(options, Retrained(world)).value();
    EXPECT_EQ(World::Fingerprint(*deployment), before) << rebuilt;
    EXPECT_EQ(deployment->log().next_sequence(), sequence);  // it is known: nothing was deployed again
  }
  deployment.reset();
  options.replace = Replace::kNo;
  EXPECT_TRUE(world.Open(options, world.Dense()).value()->start_ignored());  // the one of before is another now
}

TEST_F(DeployedModel, LearnsWhatTheJournalHoldsAgainWhereThatIsWanted) {
  options.replace = Replace::kRelearn;
  const auto deployment = world.Open(options, Retrained(world)).value();
  EXPECT_EQ(Weights(*deployment), TaughtFromTheStart());
}

TEST_F(DeployedModel, TakesOverWhileItServes) {
  const auto deployment = world.Open(options, world.Dense()).value();
  const auto deploy = [&](model::TrainedModel trained) {
    std::optional<Result<std::string>> answer;
    deployment->PostDeploy(std::move(trained), true, [&](auto result) { answer = std::move(result); });
    deployment->Settle();
    return std::move(*answer);
  };
  ASSERT_TRUE(deploy(Retrained(world)).ok());
  EXPECT_EQ(Weights(*deployment), TaughtFromTheStart());
  EXPECT_EQ(deployment->versions()->list().back().origin, "deployed");
  const auto before = World::Fingerprint(*deployment);
  const std::uint64_t sequence = deployment->log().next_sequence();
  for (auto& other : {&World::Sparse, &World::Prices}) {
    const auto refused = deploy((world.*other)());
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Code::kInvalid);
    EXPECT_NE(refused.error().text.find("another model"), std::string::npos) << refused.error().text;
  }
  model::TrainedModel named = Retrained(world);
  named.description.labels.names = {"1", "0"};
  EXPECT_NE(deploy(std::move(named)).error().text.find("labels"), std::string::npos);
  EXPECT_EQ(deployment->log().next_sequence(), sequence);
  EXPECT_EQ(World::Fingerprint(*deployment), before);
}

}  // namespace
}  // namespace freshet::deploy
