// Labels that come after predictions, and rows that come twice.

#include "deploy/deployment.h"
#include "deploy/deployment_testing.h"

namespace freshet::deploy {
namespace {

using std::chrono::seconds;

// Rows from `first` on, predicted under one id.
void Predict(Deployment& deployment, const std::string& id, std::uint64_t first, std::uint64_t count = 1,
             const std::string& owner = "") {
  data::Rows all;
  all.width = deployment.model().config().dense ? deployment.model().config().features : 0;
  all.ClearRows();
  std::vector<data::NewName> names;
  for (std::uint64_t n = first; n < first + count; ++n) {
    std::vector<data::NewName> of_row;
    const data::Rows row = World::Row(deployment.model(), n, &of_row);
    for (data::NewName& name : of_row) {
      name.entry += static_cast<std::uint32_t>(all.indices.size());
      names.push_back(name);
    }
    all.AppendRow(row.batch(), 0);
  }
  deployment.PostPrediction(id, std::move(all), std::move(names), std::vector<float>(count, 0.5f), owner);
  deployment.Settle();
}

Result<LearnReply> Feed(Deployment& deployment, const std::string& id, std::vector<float> labels,
                        std::optional<std::string> owner = {}) {
  std::optional<Result<LearnReply>> reply;
  deployment.PostFeedback(
      id, std::move(labels), [&](Result<LearnReply> answer) { reply = std::move(answer); }, std::move(owner));
  deployment.Settle();
  return std::move(*reply);
}

TEST(Feedback, IsLearnedOnce) {
  World world;
  const auto deployment = world.Open(world.Options("a"), world.Ratings()).value();
  Predict(*deployment, "p", 1);
  EXPECT_EQ(deployment->stats().predictions_noted, 1u);
  EXPECT_EQ(deployment->stats().learned, 0u);
  EXPECT_EQ(Feed(*deployment, "p", {4}).value().accepted, 1u);
  EXPECT_EQ(deployment->stats().learned, 1u);
  EXPECT_EQ(Feed(*deployment, "p", {4}).value().duplicates, 1u);
  EXPECT_EQ(Feed(*deployment, "q", {4}).value().expired, 1u);
  EXPECT_EQ(deployment->stats().learned, 1u);
  EXPECT_EQ(World::Send(*deployment, 5, "p").value().duplicates, 1u);  // ids are ids, whoever sends them
}

TEST(Feedback, TeachesWhatAnObservationWould) {
  World world;
  const auto told_later = world.Open(world.Options("a"), world.Ratings()).value();
  const auto told = world.Open(world.Options("b"), world.Ratings()).value();
  for (std::uint64_t n = 0; n < 40; ++n) {
    Predict(*told_later, Str("p", n), n);
    const float label = World::Row(told->model(), n).labels[0];
    ASSERT_EQ(Feed(*told_later, Str("p", n), {label}).value().accepted, 1u);
    ASSERT_TRUE(World::Send(*told, n).ok());
  }
  EXPECT_EQ(told_later->models().state().parameters.Checksum(), told->models().state().parameters.Checksum());
  EXPECT_NE(told_later->stats().quality.sum, told->stats().quality.sum);  // that counts what was predicted then
}

TEST(Feedback, ComesRowByRowForAPredictionOfSeveral) {
  World world;
  const auto deployment = world.Open(world.Options("a"), world.Dense()).value();
  Predict(*deployment, "p", 0, 3);
  LearnReply reply = Feed(*deployment, "p", {1, 0}).value();
  EXPECT_EQ(reply.accepted, 2u);
  reply = Feed(*deployment, "p", {1, 0, 1}).value();
  EXPECT_EQ(reply.accepted, 1u);
  EXPECT_EQ(reply.duplicates, 2u);
}

TEST(Feedback, ComesTooLateAfterItsTime) {
  World world;
  DeploymentOptions options = world.Options("a");
  options.data.feedback_ttl = 100;
  const auto deployment = world.Open(options, world.Dense()).value();
  Predict(*deployment, "a", 0);
  Predict(*deployment, "b", 1);
  world.clock.Advance(seconds(100));
  EXPECT_EQ(Feed(*deployment, "a", {1}).value().accepted, 1u);
  world.clock.Advance(seconds(1));
  EXPECT_EQ(Feed(*deployment, "b", {1}).value().expired, 1u);
}

TEST(Feedback, IsTimedByTheArrivalOfThePredictionNotByWhatTheRowSays) {
  World world;
  world.clock.Advance(seconds(1'000'000));
  const auto deployment = world.Open(world.Options("a"), world.Dense()).value();
  data::Rows rows = World::Row(deployment->model(), 1);
  rows.times.Append(77);
  deployment->PostPrediction("p", std::move(rows), {}, {0});
  deployment->Settle();
  EXPECT_EQ(Feed(*deployment, "p", {1}).value().accepted, 1u);
}

TEST(Feedback, MayComeAfterARestart) {
  for (const bool closed : {false, true}) {
    World world;
    DeploymentOptions options = world.Options("a");
    options.data.feedback_ttl = 100;
    options.journal.segment_bytes = 300;
    std::vector<double> expected;
    {
      const auto deployment = world.Open(options, world.Ratings()).value();
      world.SendMany(*deployment, 0, 10);
      Predict(*deployment, "old", 500);
      world.clock.Advance(seconds(60));
      for (std::uint64_t n = 0; n < 5; ++n) Predict(*deployment, Str("p", n), 600 + n);
      ASSERT_EQ(Feed(*deployment, "p0", {3}).value().accepted, 1u);
      if (closed) {
        ASSERT_TRUE(deployment->Close().ok());
      }
    }
    world.clock.Advance(seconds(60));
    const auto deployment = world.Open(options, world.Ratings()).value();
    EXPECT_EQ(Feed(*deployment, "old", {3}).value().expired, 1u);
    EXPECT_EQ(Feed(*deployment, "p0", {3}).value().duplicates, 1u);
    for (std::uint64_t n = 1; n < 5; ++n) EXPECT_EQ(Feed(*deployment, Str("p", n), {3}).value().accepted, 1u);
  }
}

TEST(Feedback, IsForTheOwnersRowAlsoAfterARestart) {
  World world;
  const DeploymentOptions options = world.Options("a");
  {
    const auto deployment = world.Open(options, world.Ratings()).value();
    for (const std::string owner : {"shop", "web"}) Predict(*deployment, "p", 1, 2, owner);
    EXPECT_EQ(Feed(*deployment, "p", {1, 2}).error().code, Code::kInvalid);
    EXPECT_EQ(Feed(*deployment, "p", {1, 2}, "shop").value().accepted, 2u);
  }
  const auto deployment = world.Open(options, world.Ratings()).value();
  EXPECT_EQ(Feed(*deployment, "p", {1, 2}).error().code, Code::kInvalid);
  EXPECT_EQ(Feed(*deployment, "p", {1, 2}, "shop").value().duplicates, 2u);
  EXPECT_EQ(Feed(*deployment, "p", {1, 2}, "web").value().accepted, 2u);
  EXPECT_EQ(Feed(*deployment, "p", {1, 2}, "other").value().expired, 2u);
  EXPECT_EQ(World::Send(*deployment, 5, "p/0").value().duplicates, 1u);  // labelled, whoever predicted it
}

TEST(Feedback, ReachesPredictionsThatAnEarlierProgramKeptAmongTheObservations) {
  World world;
  const DeploymentOptions options = world.Options("a");
  {
    const auto deployment = world.Open(options, world.Dense()).value();
    Slip slip;
    slip.id = "p";
    slip.scores = {0.5f};
    std::string payload;
    PackRow(World::Row(deployment->model(), 1).batch(), 0, slip, payload);
    deployment->log().Append(RecordKind::kPrediction, payload);
    ASSERT_TRUE(deployment->log().Commit().ok());
  }
  const auto deployment = world.Open(options, world.Dense()).value();
  EXPECT_EQ(Feed(*deployment, "p", {1}).value().accepted, 1u);
}

TEST(Feedback, ThatNeverComesTakesOnlySoMuchOfTheDisk) {
  World world;
  DeploymentOptions options = world.Options("a");
  options.data.pending_bytes = 20'000;
  const auto deployment = world.Open(options, world.Dense()).value();
  for (std::uint64_t n = 0; n < 2'000; ++n) Predict(*deployment, Str("flood ", n), n);
  std::uint64_t bytes = 0;
  for (const auto& [path, content] : world.disk.Snapshot())
    if (path.starts_with("/a/pending/")) bytes += content.size();
  EXPECT_LE(bytes, 3 * 20'000u);
  EXPECT_LE(deployment->stats().pending, 100u);
  EXPECT_EQ(Feed(*deployment, "flood 0", {1}).value().expired, 1u);
  EXPECT_EQ(Feed(*deployment, "flood 1999", {1}).value().accepted, 1u);
}

TEST(Feedback, ThatNeverComesPushesNoObservationOut) {
  World world;
  DeploymentOptions options = world.Options("a");
  options.journal.segment_bytes = 2'000;
  options.journal.retain_bytes = 20'000;
  options.version_rows = 50;
  const auto deployment = world.Open(options, world.Dense()).value();
  world.SendMany(*deployment, 0, 60);
  ASSERT_EQ(deployment->stats().history, 60u);
  for (std::uint64_t n = 0; n < 1'000; ++n) Predict(*deployment, Str("flood ", n), n);
  world.SendMany(*deployment, 60, 60);  // a version is kept, and what is too much goes
  EXPECT_EQ(deployment->stats().history, 120u);
}

TEST(Feedback, ThatTheDiskRefusedCanBeSentAgain) {
  World world;
  const auto deployment = world.Open(world.Options("a"), world.Ratings()).value();
  Predict(*deployment, "p", 1, 2);
  for (int round = 0; round < 3; ++round) {
    world.files.FailAt(1, true);
    EXPECT_EQ(Feed(*deployment, "p", {4, 5}).error().code, Code::kIo);
    world.files.FailAt(0);
  }
  EXPECT_EQ(Feed(*deployment, "p", {4, 5}).value().accepted, 2u);
  EXPECT_EQ(Feed(*deployment, "p", {4, 5}).value().duplicates, 2u);
}

TEST(Duplicates, AreCountedAndNotLearned) {
  World world;
  const auto deployment = world.Open(world.Options("a"), world.Sparse()).value();
  EXPECT_EQ(World::Send(*deployment, 1, "x").value().accepted, 1u);
  const LearnReply reply = World::Send(*deployment, 2, "x").value();
  EXPECT_EQ(reply.accepted, 0u);
  EXPECT_EQ(reply.duplicates, 1u);
  EXPECT_EQ(World::Send(*deployment, 3).value().accepted, 1u);
  EXPECT_EQ(World::Send(*deployment, 3).value().accepted, 1u);  // without an id every row is new
  EXPECT_EQ(deployment->stats().learned, 3u);
  EXPECT_EQ(deployment->stats().duplicates, 1u);
}

TEST(Duplicates, AreFoundWithinOneRequestToo) {
  World world;
  const auto deployment = world.Open(world.Options("a"), world.Sparse()).value();
  data::Rows rows = World::Row(deployment->model(), 0);
  rows.AppendRow(World::Row(deployment->model(), 1).batch(), 0);
  rows.AppendRow(World::Row(deployment->model(), 2).batch(), 0);
  std::optional<LearnReply> reply;
  deployment->PostLearn(std::move(rows), {}, {"a", "b", "a"}, [&](const auto& answer) { reply = answer.value(); });
  deployment->Settle();
  EXPECT_EQ(reply->accepted, 2u);
  EXPECT_EQ(reply->duplicates, 1u);
}

TEST(Duplicates, AreKnownOverTheWindowAlsoAfterRestartsAndFailures) {
  World world;
  DeploymentOptions options = world.Options("a");
  options.data.remembered_ids = 20;
  options.journal.segment_bytes = 400;
  auto deployment = world.Open(options, world.Dense()).value();
  std::uint64_t next = 0;
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    for (int i = 0; i < 15; ++i, ++next) ASSERT_EQ(World::Send(*deployment, next, Str(next)).value().accepted, 1u);
    if (round % 2 == 0) deployment.reset();
    if (round % 2 == 0) deployment = world.Open(options, world.Dense()).value();
    if (round % 3 == 0) {  // clients that try again while the disk is full push nothing out
      world.files.FailAt(1, true);
      for (int i = 0; i < 50; ++i) ASSERT_FALSE(World::Send(*deployment, 9000, Str("new", i)).ok());
      world.files.FailAt(0);
    }
    for (std::uint64_t back = 1; back <= std::min<std::uint64_t>(20, next); ++back)
      ASSERT_EQ(World::Send(*deployment, 1, Str(next - back)).value().duplicates, 1u) << back;
  }
  EXPECT_EQ(World::Send(*deployment, 1, Str(next - 21)).value().accepted, 1u);  // out of the window
}

}  // namespace
}  // namespace freshet::deploy
