// Deployments on disks that fail, fill up and forget.

#include <cmath>

#include "deploy/deployment.h"
#include "deploy/deployment_testing.h"

namespace freshet::deploy {
namespace {

// Opens it again without any version but the first: everything comes from the log.
std::vector<double> Rebuilt(World& world, const DeploymentOptions& options, model::TrainedModel start) {
  const auto now = world.disk.Snapshot();
  world.KeepOnlyTheFirstVersion(options.directory);
  std::vector<double> fingerprint;
  {
    auto rebuilt = world.Open(options, std::move(start));
    EXPECT_TRUE(rebuilt.ok()) << rebuilt.error().text;
    if (rebuilt.ok()) fingerprint = World::Fingerprint(*rebuilt.value());
  }
  world.disk.Restore(now);
  return fingerprint;
}

TEST(DeploymentFaults, WhateverOperationFailsItGoesOnWithExactlyWhatItAcknowledged) {
  for (const bool for_ever : {false, true})
    for (int nth = 1;; ++nth) {
      SCOPED_TRACE(Str("operation ", nth, for_ever ? " and later ones" : ""));
      World world;
      DeploymentOptions options = world.Options("a");
      options.schedule.max_buffer_size = 7;
      options.version_rows = 10;
      options.journal.durability = for_ever ? Durability::kEverySec : Durability::kAlways;
      options.journal.segment_bytes = 700;
      auto deployment = world.Open(options, world.Ratings()).value();  // whose rows bring new names
      world.SendMany(*deployment, 0, 3);
      world.files.FailAt(nth, for_ever);
      std::vector<std::uint64_t> refused;
      for (std::uint64_t n = 3; n < 12; ++n) {
        if (!World::Send(*deployment, n, Str("id", n)).ok()) refused.push_back(n);
      }
      const bool done = world.files.failures() == 0;
      world.files.FailAt(0);
      for (const std::uint64_t n : refused) ASSERT_EQ(World::Send(*deployment, n, Str("id", n)).value().accepted, 1u);
      for (std::uint64_t n = 3; n < 12; ++n)
        ASSERT_EQ(World::Send(*deployment, n, Str("id", n)).value().duplicates, 1u);
      world.SendMany(*deployment, 12, 5);
      ASSERT_EQ(deployment->stats().learned, 17u);
      const auto expected = World::Fingerprint(*deployment);
      deployment.reset();
      if (nth % 4 == 0) {
        ASSERT_EQ(Rebuilt(world, options, world.Ratings()), expected);
      }
      auto recovered = world.Open(options, world.Ratings());
      ASSERT_TRUE(recovered.ok()) << recovered.error().text;
      ASSERT_EQ(World::Fingerprint(*recovered.value()), expected);
      if (done) break;
    }
}

TEST(DeploymentFaults, AVersionThatCannotBeSavedStopsNothing) {
  for (const char* const place : {"version.save", "version.vitals"})
    for (int nth = 1; nth <= 4; ++nth) {
      SCOPED_TRACE(Str(place, " ", nth));
      World world;
      DeploymentOptions options = world.Options("a");
      options.version_rows = 30;
      std::vector<double> expected;
      {
        const auto deployment = world.Open(options, world.Dense()).value();
        ASSERT_TRUE(world.faults.Arm(Str(place, ":", nth, ":error")).ok());
        world.SendMany(*deployment, 0, 130);
        EXPECT_EQ(deployment->stats().iterations, 2u);
        EXPECT_EQ(deployment->stats().given_up, 0u);
        EXPECT_TRUE(world.Said("injected fault"));
        expected = World::Fingerprint(*deployment);
      }
      EXPECT_EQ(World::Fingerprint(*world.Open(options, world.Dense()).value()), expected);
    }
}

TEST(DeploymentFaults, ARestartNeedsNoRoomOnTheDisk) {
  World world;
  const DeploymentOptions options = world.Options("a");
  std::vector<double> expected;
  {
    const auto deployment = world.Open(options, world.Dense()).value();
    world.SendMany(*deployment, 0, 130);
    expected = World::Fingerprint(*deployment);
  }
  world.KeepOnlyTheFirstVersion(options.directory);
  world.files.FailAt(1, true);
  auto deployment = world.Open(options, world.Dense(), {.readers = 1});
  ASSERT_TRUE(deployment.ok()) << deployment.error().text;
  EXPECT_EQ(World::Fingerprint(*deployment.value()), expected);
  EXPECT_EQ(World::Send(*deployment.value(), 1).error().code, Code::kIo);
  EXPECT_EQ(deployment.value()->Read(0)->version, deployment.value()->stats().version);
}

TEST(DeploymentFaults, AnIterationWaitsWhileTheDiskIsFullAndTakesOverOnceItIsNot) {
  World world;
  const auto deployment = world.Open(world.Options("a"), world.Dense(), {.readers = 1}).value();
  world.SendMany(*deployment, 0, 60);
  std::optional<Result<std::string>> asked;
  deployment->PostIterate([&](Result<std::string> result) { asked = std::move(result); });
  while (!deployment->stats().training) ASSERT_TRUE(deployment->Turn());
  world.files.FailAt(1, true);
  const std::uint64_t iterations = deployment->stats().iterations, version = deployment->Read(0)->version;
  deployment->Settle();  // comes to an end although the iteration cannot
  EXPECT_TRUE(deployment->stats().training);
  EXPECT_EQ(deployment->stats().iterations, iterations);
  EXPECT_EQ(World::Send(*deployment, 60).error().code, Code::kIo);
  EXPECT_EQ(deployment->Read(0)->version, version);
  world.files.FailAt(0);
  deployment->Settle();
  EXPECT_FALSE(deployment->stats().training);
  EXPECT_EQ(deployment->stats().iterations, iterations + 1);
  EXPECT_GT(deployment->Read(0)->version, version);
  EXPECT_TRUE(World::Send(*deployment, 60).ok());
}

TEST(DeploymentFaults, AVersionThatIsDueWaitsWhileTheDiskIsFull) {
  World world;
  DeploymentOptions options = world.Options("a");
  options.method = Method::kBaselinePlus;
  options.version_rows = 10;
  const auto deployment = world.Open(options, world.Dense()).value();
  world.SendMany(*deployment, 0, 9);
  deployment->PostLearn(World::Row(deployment->model(), 9), {}, {}, [&](const Result<LearnReply>& reply) {
    EXPECT_TRUE(reply.ok());
    world.files.FailAt(1, true);  // right after the row that makes it due
  });
  deployment->Settle();
  EXPECT_EQ(deployment->versions()->list().size(), 1u);
  world.files.FailAt(0);
  deployment->Settle();
  EXPECT_EQ(deployment->versions()->list().size(), 2u);
}

// Learns nothing and fails as if every loss were infinite.
class DivergingRuntime final : public Runtime {
 public:
  Result<WorkReport> Run(const model::Model&, State& state, const History&, const Work&) override {
    state.parameters.Row(0, 0)[0] = std::nanf("");
    return Error{Code::kDiverged, "the loss of an iteration is no longer finite"};
  }
};

TEST(DeploymentFaults, AnIterationThatDivergesIsGivenUpAndTheModelStays) {
  World world;
  DivergingRuntime diverging;
  const DeploymentOptions options = world.Options("a");
  DeploymentOptions without = world.Options("b");
  without.method = Method::kBaselinePlus;
  const auto plain = world.Open(without, world.Dense()).value();
  world.SendMany(*plain, 0, 120);
  auto deployment = Deployment::Open(world.env, options, diverging, world.memory, world.Dense(), {}).value();
  world.SendMany(*deployment, 0, 120);
  EXPECT_EQ(deployment->stats().iterations, 0u);
  EXPECT_EQ(deployment->stats().given_up, 2u);
  EXPECT_EQ(World::Fingerprint(*deployment), World::Fingerprint(*plain));
  deployment.reset();
  const auto recovered = world.Open(options, world.Dense()).value();
  EXPECT_EQ(World::Fingerprint(*recovered), World::Fingerprint(*plain));
}

TEST(DeploymentFaults, AModelThatDivergedCanBeOpenedAndRolledBack) {
  World world;
  DeploymentOptions options = world.Options("a");
  options.method = Method::kBaselinePlus;
  options.optimizer.kind = "sgd";
  options.optimizer.schedule.rate = 1e30;
  options.version_rows = 5;
  auto deployment = world.Open(options, world.Ratings()).value();
  world.SendMany(*deployment, 0, 40);
  EXPECT_TRUE(deployment->stats().diverged);
  EXPECT_TRUE(std::isfinite(deployment->stats().quality.recent));
  const std::uint64_t versions = deployment->versions()->list().size();
  deployment.reset();
  auto opened = world.Open(options, world.Ratings());
  ASSERT_TRUE(opened.ok()) << opened.error().text;
  EXPECT_EQ(opened.value()->versions()->list().size(), versions);
  opened.value()->PostRollBack(0, {}, false, [](const auto& result) { EXPECT_TRUE(result.ok()); });
  opened.value()->Settle();
  EXPECT_FALSE(opened.value()->stats().diverged);
  EXPECT_TRUE(opened.value()->models().state().parameters.AllFinite());
}

TEST(DeploymentFaults, TakesAnOlderVersionWhenTheNewestIsDamaged) {
  for (const char* const ending : {".model", ".model.vitals"})
    for (const int how : {0, 1}) {
      SCOPED_TRACE(Str(ending, " ", how));
      World world;
      DeploymentOptions options = world.Options("a");
      options.version_rows = 40;
      std::vector<double> expected;
      std::string path;
      {
        const auto deployment = world.Open(options, world.Sparse()).value();
        world.SendMany(*deployment, 0, 230);
        expected = World::Fingerprint(*deployment);
        path = deployment->versions()->PathOf(deployment->versions()->list().back().id);
      }
      path = path.substr(0, path.rfind('.')) + ending;
      std::string bytes = world.disk.Read(path);
      if (how == 0) bytes[bytes.size() / 2] ^= 1;
      if (how == 1) bytes.resize(bytes.size() / 2);
      world.disk.Write(path, bytes);
      auto recovered = world.Open(options, world.Sparse());
      ASSERT_TRUE(recovered.ok()) << recovered.error().text;
      EXPECT_TRUE(world.Said("version damaged"));
      EXPECT_EQ(World::Fingerprint(*recovered.value()), expected);
    }
}

TEST(DeploymentFaults, RefusesADirectoryOfAnotherModelAndLeavesItAlone) {
  World world;
  const DeploymentOptions options = world.Options("a");
  std::vector<double> expected;
  {
    const auto deployment = world.Open(options, world.Dense(3)).value();
    world.SendMany(*deployment, 0, 20);
    expected = World::Fingerprint(*deployment);
  }
  EXPECT_EQ(world.Open(options, world.Dense(4)).error().code, Code::kInvalid);
  EXPECT_EQ(world.Open(options, world.Sparse()).error().code, Code::kInvalid);
  EXPECT_EQ(World::Fingerprint(*world.Open(options, world.Dense(3)).value()), expected);
}

TEST(DeploymentFaults, SaysThatItCannotBeRebuiltWhenVersionsAndTheBeginningOfTheLogAreGone) {
  World world;
  DeploymentOptions options = world.Options("a");
  options.journal.segment_bytes = 500;
  options.journal.retain_bytes = 1000;
  {
    const auto deployment = world.Open(options, world.Dense()).value();
    world.SendMany(*deployment, 0, 200);
  }
  for (const auto& [path, bytes] : world.disk.Snapshot())
    if (path.starts_with("/a/versions/")) {
      ASSERT_TRUE(world.disk.Remove(path).ok());
    }
  const auto opened = world.Open(options, world.Dense());
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, Code::kCorrupt);
}

TEST(DeploymentFaults, NothingIsLostAfterAJournalThatLostItsEnd) {
  World world;
  DeploymentOptions options = world.Options("a");
  options.method = Method::kBaselinePlus;
  options.version_rows = 25;
  MemoryDisk::Contents early;
  {
    const auto deployment = world.Open(options, world.Dense()).value();
    world.SendMany(*deployment, 0, 10);
    early = world.disk.Snapshot();
    world.SendMany(*deployment, 10, 90);
  }
  // Versions are there, the end of the journal is not.
  auto contents = world.disk.Snapshot();
  for (auto& [path, bytes] : contents)
    if (path.ends_with(".log")) bytes = early.at(path);
  world.disk.Restore(contents);
  options.accept_loss = true;
  std::vector<double> expected;
  {
    const auto deployment = world.Open(options, world.Dense()).value();
    EXPECT_EQ(deployment->stats().learned, 100u);
    world.SendMany(*deployment, 100, 17);
    expected = World::Fingerprint(*deployment);
  }
  const auto recovered = world.Open(options, world.Dense()).value();
  EXPECT_EQ(recovered->stats().learned, 117u);
  EXPECT_EQ(World::Fingerprint(*recovered), expected);
}

TEST(DeploymentFaults, ADamagedRecordCostsItsRowAndNoOthersNames) {
  World world;
  DeploymentOptions options = world.Options("a");
  options.method = Method::kBaselinePlus;
  std::vector<std::string> users;
  {
    const auto deployment = world.Open(options, world.Ratings()).value();
    world.SendMany(*deployment, 0, 60);
    const auto& dictionary = deployment->models().description().dictionaries[0];
    for (std::uint32_t n = 0; n < dictionary.size(); ++n) users.emplace_back(dictionary.Name(n));
  }
  const std::string path = "/a/journal/00000000000000000001.log";
  std::string bytes = world.disk.Read(path);
  bytes[200] ^= 1;  // in one of the first records, which bring names
  world.disk.Write(path, bytes);
  const auto recovered = world.Open(options, world.Ratings()).value();
  EXPECT_EQ(recovered->stats().learned, 59u);
  EXPECT_EQ(recovered->stats().damaged_places, 1u);
  const auto& dictionary = recovered->models().description().dictionaries[0];
  ASSERT_EQ(dictionary.size(), users.size());
  int lost = 0;
  for (std::uint32_t n = 0; n < users.size(); ++n) lost += dictionary.Name(n) != users[n] ? 1 : 0;
  EXPECT_EQ(lost, 1);
  world.SendMany(*recovered, 60, 100);
  EXPECT_EQ(recovered->stats().learned, 159u);
}

}  // namespace
}  // namespace freshet::deploy
