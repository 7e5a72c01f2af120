// Iterations whose work cannot be repeated: their end names the version that was made.

#include "deploy/deployment_testing.h"

namespace freshet::deploy {
namespace {

// Never does the same twice, as workers who wait for nobody.
class RestlessRuntime final : public Runtime {
 public:
  bool repeats() const override { return false; }
  Result<WorkReport> Run(const model::Model& model, State& state, const History& history, const Work& work) override {
    Work mine = work;
    mine.scale *= 1 + 0.1 * static_cast<double>(++runs);
    return inside_.Run(model, state, history, mine);
  }
  int runs = 0;

 private:
  LocalRuntime inside_;
};

class MadeTest : public testing::Test {
 protected:
  std::unique_ptr<Deployment> Open(const std::string& name = "made") {
    auto options = world_.Options(name);
    options.versions_kept = kept_;
    auto opened = Deployment::Open(world_.env, options, runtime_, world_.memory, world_.Dense(), {});
    EXPECT_TRUE(opened.ok()) << opened.error().text;
    return std::move(opened).value();
  }
  std::vector<std::string> Models() const {
    std::vector<std::string> paths;
    for (const auto& [path, bytes] : world_.disk.Snapshot())
      if (path.starts_with("/made") && path.ends_with(".model")) paths.push_back(path);
    return paths;
  }

  std::size_t kept_ = 2;
  World world_;
  RestlessRuntime runtime_;
};

TEST_F(MadeTest, ARestartTakesWhatWasMadeAndDoesNotMakeItAgain) {
  auto deployment = Open();
  for (std::uint64_t n = 0; n < 600; ++n) {
    ASSERT_TRUE(World::Send(*deployment, n).ok());
    if (n % 37 != 36) continue;
    const auto before = World::Fingerprint(*deployment);
    const int runs = runtime_.runs;
    deployment.reset();  // as after kill -9
    deployment = Open();
    deployment->Settle();
    EXPECT_EQ(runtime_.runs, runs);
    ASSERT_EQ(World::Fingerprint(*deployment), before) << "after row " << n;
  }
  EXPECT_GT(deployment->stats().iterations, 8u);
  EXPECT_FALSE(world_.Said("ERROR")) << Join(world_.lines, "\n");
}

TEST_F(MadeTest, WhatARecordNamesIsOnTheDiskBeforeItWhereverACrashComes) {
  auto deployment = Open();
  World::SendMany(*deployment, 0, 49);
  int crashes = 0;
  for (int change = 1; change < 200; ++change) {
    const MemoryDisk::Contents start = world_.disk.Snapshot();
    world_.disk.TakeImageAfter(change);
    World::SendMany(*deployment, 49, 3);  // an iteration among them
    const auto image = world_.disk.image();
    deployment.reset();
    if (!image) break;
    ++crashes;
    world_.disk.Restore(*image);
    deployment = Open();
    deployment->Settle();
    EXPECT_FALSE(world_.Said("ERROR")) << "after change " << change << ": " << Join(world_.lines, "\n");
    deployment.reset();
    world_.disk.Restore(start);
    deployment = Open();
  }
  EXPECT_GT(crashes, 5);
}

TEST_F(MadeTest, IfThatIsDamagedItIsSaidAndTheWorkIsDoneAgain) {
  kept_ = 100;
  auto deployment = Open();
  World::SendMany(*deployment, 0, 120);
  const std::uint64_t iterations = deployment->stats().iterations;
  ASSERT_GT(iterations, 1u);
  deployment.reset();
  const std::vector<std::string> models = Models();
  ASSERT_GT(models.size(), 2u);
  for (std::size_t i = 1; i < models.size(); ++i) {
    std::string bytes = world_.disk.Read(models[i]);
    bytes[bytes.size() / 2] ^= 1;
    world_.disk.Write(models[i], bytes);
  }
  const int runs = runtime_.runs;
  deployment = Open();
  deployment->Settle();
  EXPECT_EQ(deployment->stats().iterations, iterations);
  EXPECT_EQ(runtime_.runs - runs, static_cast<int>(iterations));
  EXPECT_TRUE(world_.Said("what it made is damaged")) << Join(world_.lines, "\n");
}

}  // namespace
}  // namespace freshet::deploy
