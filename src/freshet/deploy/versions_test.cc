#include "deploy/versions.h"

#include "deploy/deployment_testing.h"

namespace freshet::deploy {
namespace {

class VersionsTest : public testing::Test {
 protected:
  std::unique_ptr<Versions> Open() { return Versions::Open(world.env, "/versions").value(); }
  std::unique_ptr<State> Make() { return State::Make(*trained.model, options, world.memory, {}).value(); }
  // A state that has learned n rows, with their names.
  std::unique_ptr<State> Trained(std::uint64_t rows) {
    auto state = Make();
    std::vector<float> scores;
    for (std::uint64_t n = 0; n < rows; ++n) {
      std::vector<data::NewName> names;
      data::Rows row = World::Row(*trained.model, n, &names);
      data::AddNames(names, trained.description, row);
      EXPECT_TRUE(state->Learn(*trained.model, row, scores).ok());
    }
    return state;
  }
  static VersionInfo Info(std::uint64_t id) { return {id, "updates", id + 1, 10 * id, 0.1, 77, false}; }
  void Keep(Versions& versions, std::uint64_t id) {
    ASSERT_TRUE(versions.Save(Info(id), *trained.model, *Make(), trained.description).ok());
    ASSERT_TRUE(versions.SaveVitals(Info(id), Str("vitals of ", id)).ok());
  }
  static std::vector<std::uint64_t> Ids(const Versions& versions) {
    std::vector<std::uint64_t> ids;
    for (const VersionInfo& info : versions.list()) ids.push_back(info.id);
    return ids;
  }
  World world;
  model::TrainedModel trained = world.Ratings();
  optimize::OptimizerOptions options;
};

TEST_F(VersionsTest, ComeBackBitForBitWithEveryOptimizer) {
  for (const std::string& kind : optimize::Optimizer::Kinds()) {
    SCOPED_TRACE(kind);
    options.kind = kind;
    options.schedule.kind = "inverse";
    const auto state = Trained(50);
    const auto versions = Open();
    ASSERT_TRUE(versions->Save(Info(3), *trained.model, *state, trained.description).ok());
    ASSERT_TRUE(versions->SaveVitals(Info(3), "{}").ok());
    const auto loaded = Make();
    const auto description = Open()->Load(3, *trained.model, *loaded).value();
    for (std::size_t d = 0; d < 2; ++d)
      EXPECT_EQ(description.dictionaries[d].Serialize(), trained.description.dictionaries[d].Serialize());
    for (std::size_t b = 0; b < state->parameters.blocks(); ++b) {
      EXPECT_EQ(loaded->parameters.Gather(b), state->parameters.Gather(b));
      EXPECT_EQ(loaded->parameters.GatherBeside(b), state->parameters.GatherBeside(b));
      EXPECT_EQ(loaded->optimizer->state().Gather(b), state->optimizer->state().Gather(b));
    }
    EXPECT_EQ(loaded->optimizer->step(), state->optimizer->step());
    EXPECT_EQ(loaded->optimizer->rate(), state->optimizer->rate());
  }
}

TEST_F(VersionsTest, AreModelFilesThatOthersCanRead) {
  const auto state = Trained(20);
  const auto versions = Open();
  ASSERT_TRUE(versions->Save(Info(3), *trained.model, *state, trained.description).ok());
  const auto read = model::LoadModel(world.files, versions->PathOf(3), world.memory);
  ASSERT_TRUE(read.ok()) << read.error().text;
  for (std::size_t b = 0; b < state->parameters.blocks(); ++b)
    EXPECT_EQ(read.value().parameters.Gather(b), state->parameters.Gather(b));
}

TEST_F(VersionsTest, CountOnceTheirVitalsAreThere) {
  {
    const auto versions = Open();
    Keep(*versions, 5);
    ASSERT_TRUE(versions->Save(Info(9), *trained.model, *Make(), trained.description).ok());
    EXPECT_EQ(Ids(*versions), std::vector<std::uint64_t>{5});
  }
  const auto versions = Open();
  EXPECT_EQ(Ids(*versions), std::vector<std::uint64_t>{5});
  EXPECT_TRUE(world.disk.Exists(versions->PathOf(9)));  // a record may name it
  ASSERT_TRUE(versions->RemoveIncomplete().ok());
  EXPECT_FALSE(world.disk.Exists(versions->PathOf(9)));
  EXPECT_TRUE(world.disk.Exists(versions->PathOf(5)));
  EXPECT_EQ(versions->LoadVitals(5).value(), "vitals of 5");
  const VersionInfo info = versions->Find(5).value();
  EXPECT_EQ(info.ToJson(), Info(5).ToJson());
  EXPECT_FALSE(versions->Find(9).has_value());
}

TEST_F(VersionsTest, ThatAreDamagedAreNotOffered) {
  for (const char* const ending : {"", ".vitals"}) {
    SCOPED_TRACE(ending);
    world.disk.Restore({});
    {
      const auto versions = Open();
      Keep(*versions, 5);
      Keep(*versions, 6);
    }
    const std::string path = Open()->PathOf(6) + ending, bytes = world.disk.Read(path);
    base::Random random(1, "damage");
    int found = 0;
    for (int round = 0; round < 60; ++round) {
      std::string damaged = bytes;
      if (round % 3 == 0)
        damaged.resize(random.Below(bytes.size()));
      else
        damaged[random.Below(bytes.size())] ^= static_cast<char>(1 << random.Below(8));
      world.disk.Write(path, damaged);
      const auto versions = Open();
      ASSERT_TRUE(versions->Find(5).has_value());
      // A checksum whose name is damaged is not looked at; then nothing else is damaged.
      if (versions->Find(6) && versions->Load(6, *trained.model, *Make()).ok())
        ASSERT_EQ(versions->LoadVitals(6).value(), "vitals of 6");
      else
        ++found;
      ASSERT_TRUE(versions->Load(5, *trained.model, *Make()).ok());
    }
    EXPECT_GT(found, 50);
  }
}

TEST_F(VersionsTest, OfAnotherModelAreRefusedAsSuch) {
  const auto versions = Open();
  Keep(*versions, 5);
  const auto other = world.Ratings(7);
  const auto state = State::Make(*other.model, options, world.memory, {}).value();
  EXPECT_EQ(versions->Load(5, *other.model, *state).error().code, Code::kInvalid);
  EXPECT_EQ(versions->Load(8, *trained.model, *Make()).error().code, Code::kNotFound);
}

TEST_F(VersionsTest, ArePrunedButForPinnedOnesAndThoseThatAReplayNeeds) {
  const auto versions = Open();
  for (std::uint64_t id = 1; id <= 10; ++id) Keep(*versions, id);
  versions->Pin(2, true);
  versions->Hold(3, 11);
  ASSERT_TRUE(versions->Prune(2).ok());
  auto left = Ids(*versions);
  EXPECT_EQ(left.size(), 4u);
  for (const std::uint64_t id : {2, 3, 10}) EXPECT_TRUE(versions->Find(id).has_value()) << id;
  EXPECT_EQ(versions->NeededFrom(100), 4u);  // what came after version 3 may be relearned
  Keep(*versions, 12);                       // a replay can begin here now
  EXPECT_EQ(versions->NeededFrom(13), 13u);
  ASSERT_TRUE(versions->Prune(0).ok());
  EXPECT_EQ(Ids(*versions), (std::vector<std::uint64_t>{2, 12}));  // the newest stays whatever is asked for
  EXPECT_EQ(Ids(*Open()), (std::vector<std::uint64_t>{2, 12}));
  versions->PinOnly({12}, 12);
  EXPECT_FALSE(versions->Find(2).value().pinned);
  EXPECT_FALSE(versions->Find(12).value().pinned);
}

TEST_F(VersionsTest, MayHaveADirectoryWhoseNameLooksLikeAPattern) {
  for (int round = 0; round < 2; ++round) {
    const auto versions = Versions::Open(world.env, "/a[b]*").value();
    EXPECT_EQ(versions->list().size(), static_cast<std::size_t>(round));
    Keep(*versions, static_cast<std::uint64_t>(round));
  }
}

}  // namespace
}  // namespace freshet::deploy
