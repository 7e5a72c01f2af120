// Versions, pins, roll-backs, data sets and what retention leaves.

#include "deploy/deployment.h"
#include "deploy/deployment_testing.h"
#include "deploy/weights_testing.h"

namespace freshet::deploy {
namespace {

template <class Post>
Result<std::string> Ask(Deployment& deployment, const Post& post) {
  std::optional<Result<std::string>> answer;
  post([&](Result<std::string> result) { answer = std::move(result); });
  deployment.Settle();
  return std::move(*answer);
}
Result<std::string> RollBack(Deployment& deployment, std::uint64_t version, bool relearn = false,
                             const Discard& discard = {}) {
  return Ask(deployment, [&](Done done) { deployment.PostRollBack(version, discard, relearn, std::move(done)); });
}

class OnlineDeployment : public testing::Test {
 protected:
  OnlineDeployment() {
    options.method = Method::kBaselinePlus;  // so that weights depend on the rows alone
    options.version_rows = 20;
  }
  World world;
  DeploymentOptions options = world.Options("a");
};

TEST_F(OnlineDeployment, RollsBackToAVersionAsItWas) {
  const auto deployment = world.Open(options, world.Dense()).value();
  world.SendMany(*deployment, 0, 20);
  const auto then = Weights(*deployment);
  const std::uint64_t version = deployment->versions()->list().back().id;
  world.SendMany(*deployment, 20, 30);
  EXPECT_NE(Weights(*deployment), then);
  ASSERT_TRUE(RollBack(*deployment, version).ok());
  EXPECT_EQ(Weights(*deployment), then);
  EXPECT_EQ(deployment->versions()->list().back().origin, "roll-back");
}

TEST_F(OnlineDeployment, RelearnsWhatCameSinceWithoutWhatIsDiscarded) {
  const auto deployment = world.Open(options, world.Dense()).value();
  DeploymentOptions other = options;
  other.directory = "/b";
  const auto expected = world.Open(other, world.Dense()).value();
  std::uint64_t first_bad = 0, last_bad = 0;
  for (std::uint64_t n = 0; n < 70; ++n) {
    const std::uint64_t sequence = World::Send(*deployment, n).value().last_sequence;
    if (n == 30) first_bad = sequence;
    if (n == 39) last_bad = sequence;
    if (n < 30 || n > 39) {
      ASSERT_TRUE(World::Send(*expected, n).ok());
    }
  }
  ASSERT_TRUE(
      RollBack(*deployment, deployment->versions()->list()[1].id, true, {.sequences = Ranges({{first_bad, last_bad}})})
          .ok());
  EXPECT_EQ(Weights(*deployment), Weights(*expected));
  ASSERT_TRUE(RollBack(*deployment, 0, true).ok());  // what was discarded once stays so
  EXPECT_EQ(Weights(*deployment), Weights(*expected));
  data::Rows rows;
  rows.width = 3;
  rows.ClearRows();
  ASSERT_TRUE(deployment->log().Read(UpTo(70), rows).ok());
  EXPECT_EQ(rows.size(), 60u);
}

TEST_F(OnlineDeployment, DiscardsWhatIsNamedByItsIdsAndTimes) {
  for (const bool by_time : {false, true}) {
    SCOPED_TRACE(by_time ? "by time" : "by id");
    options.directory = Str("/times", by_time);
    auto deployment = world.Open(options, world.Dense()).value();
    DeploymentOptions other = options;
    other.directory += "-expected";
    const auto expected = world.Open(other, world.Dense()).value();
    const auto bad = [&](std::uint64_t n) { return by_time ? n >= 20 && n < 35 : n % 3 == 1; };
    Discard discard;
    for (std::uint64_t n = 0; n < 60; ++n) {
      world.clock.Advance(std::chrono::seconds(10));
      const std::int64_t now = std::chrono::duration_cast<std::chrono::seconds>(world.clock.Wall()).count();
      ASSERT_TRUE(World::Send(*deployment, n, Str("row ", n)).ok());
      if (!bad(n)) {
        ASSERT_TRUE(World::Send(*expected, n, Str("row ", n)).ok());
      } else if (!by_time) {
        discard.ids.push_back(Str("row ", n));
      } else {
        discard.times = {discard.times ? discard.times->first : now, now};
      }
    }
    const auto answer = RollBack(*deployment, 0, true, discard);
    ASSERT_TRUE(answer.ok()) << answer.error().text;
    EXPECT_NE(answer.value().find(by_time ? "\"discarded\":15" : "\"discarded\":20"), std::string::npos)
        << answer.value();
    EXPECT_EQ(Weights(*deployment), Weights(*expected));
    deployment.reset();
    world.KeepOnlyTheFirstVersion(options.directory);
    deployment = world.Open(options, world.Dense()).value();
    EXPECT_EQ(Weights(*deployment), Weights(*expected));
    data::Rows rows;
    rows.width = 3;
    rows.ClearRows();
    ASSERT_TRUE(deployment->log().Read(UpTo(60), rows).ok());
    EXPECT_EQ(rows.size(), by_time ? 45u : 40u);
  }
}

TEST_F(OnlineDeployment, RefusesRollBacksThatMakeNoSense) {
  const auto deployment = world.Open(options, world.Dense()).value();
  world.SendMany(*deployment, 0, 10);
  const auto before = World::Fingerprint(*deployment);
  const std::uint64_t records = deployment->log().next_sequence();
  EXPECT_EQ(RollBack(*deployment, 12345).error().code, Code::kNotFound);
  EXPECT_EQ(RollBack(*deployment, 0, false, {.sequences = Ranges({{5, 4000}})}).error().code, Code::kInvalid);
  EXPECT_EQ(RollBack(*deployment, 0, false, {.ids = {"nobody's"}}).error().code, Code::kNotFound);
  EXPECT_EQ(RollBack(*deployment, 0, false, {.times = std::pair(-9, -5)}).error().code, Code::kNotFound);
  world.disk.Write(deployment->versions()->PathOf(0), "damaged");
  EXPECT_EQ(RollBack(*deployment, 0).error().code, Code::kCorrupt);
  EXPECT_EQ(deployment->log().next_sequence(), records);  // no restart will have to follow them
  EXPECT_EQ(World::Fingerprint(*deployment), before);
}

TEST_F(OnlineDeployment, RefusesToRelearnWhatTheJournalHasForgotten) {
  options.journal.segment_bytes = 400;
  options.journal.retain_bytes = 1000;
  const auto deployment = world.Open(options, world.Dense()).value();
  world.SendMany(*deployment, 0, 100);
  EXPECT_EQ(RollBack(*deployment, 0, true).error().code, Code::kInvalid);
  EXPECT_TRUE(RollBack(*deployment, 0, false).ok());
}

TEST_F(OnlineDeployment, KeepsAsManyVersionsAsItShouldAndThoseThatArePinned) {
  options.versions_kept = 2;
  options.version_rows = 10;
  auto deployment = world.Open(options, world.Dense()).value();
  world.SendMany(*deployment, 0, 10);
  const std::uint64_t version = deployment->versions()->list().back().id;
  ASSERT_TRUE(Ask(*deployment, [&](Done done) { deployment->PostPin(version, true, std::move(done)); }).ok());
  world.SendMany(*deployment, 10, 50);
  EXPECT_EQ(deployment->versions()->list().size(), 4u);  // the first and this one are pinned
  EXPECT_TRUE(deployment->versions()->Find(version).value().pinned);
  ASSERT_TRUE(Ask(*deployment, [&](Done done) { deployment->PostPin(0, false, std::move(done)); }).ok());
  for (int round = 0; round < 2; ++round) {
    deployment.reset();
    deployment = world.Open(options, world.Dense()).value();
    EXPECT_TRUE(deployment->versions()->Find(version).value().pinned);
    if (round == 0) {
      EXPECT_FALSE(deployment->versions()->Find(0).value().pinned);
    }
    world.SendMany(*deployment, 100, 10);
  }
  EXPECT_FALSE(deployment->versions()->Find(0).has_value());
  EXPECT_EQ(Ask(*deployment, [&](Done done) { deployment->PostPin(0, true, std::move(done)); }).error().code,
            Code::kNotFound);
}

TEST_F(OnlineDeployment, KeepsItsNewestVersionWhateverIsAskedFor) {
  options.versions_kept = 0;
  options.journal.segment_bytes = 300;
  options.journal.retain_bytes = 1;
  std::vector<double> expected;
  {
    const auto deployment = world.Open(options, world.Dense()).value();
    world.SendMany(*deployment, 0, 105);
    expected = World::Fingerprint(*deployment);
    EXPECT_LT(deployment->stats().history, 105u);
  }
  EXPECT_EQ(World::Fingerprint(*world.Open(options, world.Dense()).value()), expected);
}

TEST(Deployment, RollsBackInTheTurnInWhichAnIterationEnds) {
  World world;
  const auto deployment = world.Open(world.Options("a"), world.Dense()).value();
  world.SendMany(*deployment, 0, 60);
  deployment->PostIterate([](const auto&) {});
  while (!deployment->stats().training) ASSERT_TRUE(deployment->Turn());
  while (deployment->background().RunOne()) continue;  // it has ended and nobody has looked yet
  const std::uint64_t iterations = deployment->stats().iterations;
  EXPECT_TRUE(RollBack(*deployment, 0).ok());
  EXPECT_FALSE(deployment->stats().training);
  EXPECT_EQ(deployment->stats().iterations, iterations);
  EXPECT_EQ(deployment->stats().roll_backs, 1u);
}

TEST(Deployment, KeepsNoVersionOfTheMiddleOfAnIteration) {
  World world;
  DeploymentOptions options = world.Options("a");
  options.version_rows = 10;
  auto deployment = world.Open(options, world.Dense()).value();
  world.SendMany(*deployment, 0, 45);
  deployment->PostIterate([](const auto&) {});
  while (!deployment->stats().training) ASSERT_TRUE(deployment->Turn());
  for (std::uint64_t n = 45; n < 75; ++n) {  // versions are due, and the iteration has not begun
    deployment->PostLearn(World::Row(deployment->model(), n), {}, {}, [](const auto&) {});
    (void)deployment->Turn();
  }
  deployment->Settle();
  const auto expected = World::Fingerprint(*deployment);
  deployment.reset();
  deployment = world.Open(options, world.Dense()).value();
  EXPECT_EQ(World::Fingerprint(*deployment), expected);
}

TEST(Deployment, ForgetsOldRowsAndStillIteratesAndRecovers) {
  for (const bool by_age : {false, true}) {
    SCOPED_TRACE(by_age);
    World world;
    DeploymentOptions options = world.Options("a");
    options.schedule.max_buffer_size = 20;
    options.journal.segment_bytes = 600;
    options.journal.retain_bytes = by_age ? 0 : 5000;
    options.journal.retain_seconds = by_age ? 50 : 0;
    auto deployment = world.Open(options, world.Dense()).value();
    for (std::uint64_t n = 0; n < 400; ++n) {
      world.clock.Advance(std::chrono::seconds(1));
      ASSERT_TRUE(World::Send(*deployment, n).ok());
      if (n % 70 != 69) continue;
      const auto expected = World::Fingerprint(*deployment);
      deployment.reset();
      deployment = world.Open(options, world.Dense()).value();
      ASSERT_EQ(World::Fingerprint(*deployment), expected);
    }
    const Stats stats = deployment->stats();
    EXPECT_EQ(stats.learned, 400u);
    EXPECT_EQ(stats.iterations, 20u);
    EXPECT_EQ(stats.given_up, 0u);
    EXPECT_LT(stats.history, 200u);
    EXPECT_GE(stats.history, 20u);
    if (!by_age) {
      EXPECT_LT(stats.journal_bytes, 8000u);
    }
    EXPECT_FALSE(world.Said("ERROR")) << Join(world.lines, "\n");
  }
}

TEST(Deployment, ClosesWithAVersionThatTheNextStartNeedNotCatchUpWith) {
  World world;
  const DeploymentOptions options = world.Options("a");
  auto deployment = world.Open(options, world.Dense()).value();
  world.SendMany(*deployment, 0, 70);
  deployment->PostIterate([](const auto&) {});
  while (!deployment->stats().training) ASSERT_TRUE(deployment->Turn());
  bool answered = false;
  deployment->PostLearn(World::Row(deployment->model(), 70), {}, {}, [&](const auto& reply) { answered = reply.ok(); });
  ASSERT_TRUE(deployment->Close().ok());  // the iteration is given up; what was posted is not
  EXPECT_TRUE(answered);
  EXPECT_EQ(deployment->stats().given_up, 1u);
  EXPECT_EQ(deployment->versions()->list().back().origin, "stop");
  const auto expected = World::Fingerprint(*deployment);
  deployment.reset();
  world.lines.clear();
  deployment = world.Open(options, world.Dense()).value();
  EXPECT_FALSE(world.Said("recovered")) << Join(world.lines, "\n");
  EXPECT_EQ(World::Fingerprint(*deployment), expected);
}

TEST(Deployment, RefusesRowsThatNoModelOrRecordHasRoomFor) {
  World world;
  const auto deployment = world.Open(world.Options("a"), world.Sparse()).value();
  const auto send = [&](data::Rows rows, std::vector<std::string> ids) {
    std::optional<Result<LearnReply>> reply;
    deployment->PostLearn(std::move(rows), {}, std::move(ids), [&](auto answer) { reply = std::move(answer); });
    deployment->Settle();
    return std::move(*reply);
  };
  data::Rows far = World::Row(deployment->model(), 0);
  far.indices[0] = data::kUnseen - 1;
  EXPECT_EQ(send(std::move(far), {}).error().code, Code::kBadInput);
  EXPECT_EQ(send(World::Row(deployment->model(), 0), {std::string(kMostPayload, 'x')}).error().code, Code::kBadInput);
  EXPECT_EQ(deployment->log().next_sequence(), 1u);
  EXPECT_TRUE(send(World::Row(deployment->model(), 0), {}).ok());
}

TEST(Deployment, RemembersWhatUsersHaveRated) {
  World world;
  const DeploymentOptions options = world.Options("a");
  std::vector<std::vector<std::uint32_t>> expected;
  {
    const auto deployment = world.Open(options, world.Ratings(), {.readers = 1}).value();
    world.SendMany(*deployment, 0, 100);
    for (std::uint32_t user = 0; user < 25; ++user) expected.push_back(deployment->SeenBy(user));
    EXPECT_FALSE(expected[0].empty());
    ASSERT_TRUE(deployment->Close().ok());
  }
  const auto deployment = world.Open(options, world.Ratings(), {.readers = 1}).value();
  for (std::uint32_t user = 0; user < 25; ++user) EXPECT_EQ(deployment->SeenBy(user), expected[user]) << user;
}

TEST(Deployment, ConvergesAndWakesUpWhenDataComes) {
  World world;
  DeploymentOptions options = world.Options("a");
  options.schedule.when_idle = true;
  options.schedule.patience = 3;
  options.schedule.stagnation = 0.5;  // nearly nothing is an improvement
  auto deployment = world.Open(options, world.Dense()).value();
  world.SendMany(*deployment, 0, 30);
  EXPECT_TRUE(deployment->stats().converged);
  const std::uint64_t iterations = deployment->stats().iterations;
  deployment->Settle();
  EXPECT_EQ(deployment->stats().iterations, iterations);
  deployment.reset();
  deployment = world.Open(options, world.Dense()).value();
  deployment->Settle();
  EXPECT_TRUE(deployment->stats().converged);  // it remembers
  EXPECT_EQ(deployment->stats().iterations, iterations);
  world.SendMany(*deployment, 30, 1);
  EXPECT_GT(deployment->stats().iterations, iterations);
  EXPECT_TRUE(deployment->stats().converged);
}

TEST(DeploymentDatasets, JoinSideBySideUnderTheirOwnNames) {
  World world;
  const auto deployment = world.Open(world.Options("a"), world.Ratings()).value();
  world.SendMany(*deployment, 0, 5);
  world.disk.Write("/one", "ann::x::3\nbob::y::4\n");
  world.disk.Write("/two", "cid::x::1\ncid::z::2\ndan::y::5\n");
  int joined = 0;
  for (const char* const path : {"/one", "/two"})
    deployment->PostDataset(path, [&](const auto& result) {
      EXPECT_TRUE(result.ok()) << result.error().text;
      ++joined;
    });
  deployment->Settle();
  EXPECT_EQ(joined, 2);
  EXPECT_EQ(deployment->log().end(), 10u);
  data::Rows rows;
  rows.ClearRows();
  ASSERT_TRUE(deployment->log().Read(UpTo(10, 5), rows).ok());
  const auto& users = deployment->models().description().dictionaries[0];
  std::vector<std::string_view> names;
  for (std::size_t r = 0; r < rows.size(); ++r) names.push_back(users.Name(rows.indices[2 * r]));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string_view>{"ann", "bob", "cid", "cid", "dan"}));
}

TEST(DeploymentDatasets, AreRefusedWhenThereIsNothingInThem) {
  World world;
  const auto deployment = world.Open(world.Options("a"), world.Ratings()).value();
  world.disk.Write("/empty", "");
  for (const char* const path : {"/empty", "/nowhere"}) {
    const auto joined = Ask(*deployment, [&](Done done) { deployment->PostDataset(path, std::move(done)); });
    EXPECT_FALSE(joined.ok()) << path;
  }
  EXPECT_EQ(deployment->log().next_sequence(), 1u);
}

TEST(DeploymentDatasets, KeepTheirNamesApartFromThoseThatTheDiskRefused) {
  World world;
  DeploymentOptions options = world.Options("a");
  options.method = Method::kBaselinePlus;
  auto deployment = world.Open(options, world.Ratings()).value();
  world.SendMany(*deployment, 0, 5);
  world.files.FailAt(1, true);
  ASSERT_FALSE(World::Send(*deployment, 77).ok());  // its names have numbers now, and no record
  world.files.FailAt(0);
  world.disk.Write("/one", "ann::x::3\nbob::y::4\n");
  ASSERT_TRUE(Ask(*deployment, [&](Done done) { deployment->PostDataset("/one", std::move(done)); }).ok());
  world.SendMany(*deployment, 5, 5);
  const auto expected = World::Fingerprint(*deployment);
  deployment.reset();
  deployment = world.Open(options, world.Ratings()).value();
  EXPECT_EQ(World::Fingerprint(*deployment), expected);
}

}  // namespace
}  // namespace freshet::deploy
