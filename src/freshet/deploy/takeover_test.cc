#include "deploy/takeover.h"

#include <gtest/gtest.h>

#include "deploy/deployment_testing.h"

namespace freshet::deploy {
namespace {

ModelAndInput Of(const model::TrainedModel& trained) { return {*trained.model, trained.description}; }

TEST(Takeover, IsForModelsToWhichRowsMeanTheSame) {
  World world;
  const model::TrainedModel present = world.Dense(3), next = world.Dense(3), wide = world.Dense(4);
  EXPECT_TRUE(MayTakeOver(Of(next), Of(present)).ok());
  EXPECT_EQ(MayTakeOver(Of(wide), Of(present)).error().code, Code::kInvalid);
  model::TrainedModel other = world.Dense(3);
  other.description.labels.names = {"1", "0"};
  const auto labels = MayTakeOver(Of(other), Of(present));
  ASSERT_FALSE(labels.ok());
  EXPECT_NE(labels.error().text.find("its labels are others"), std::string::npos) << labels.error().text;
}

TEST(Takeover, KeepsEveryModelFileUnderANumberOfItsOwn) {
  World world;
  const model::TrainedModel trained = world.Dense();
  for (const std::string expected : {"7.model", "8.model"}) {
    const auto file = KeepModelFile(world.files, "/deployed", 7, *trained.model, trained);
    ASSERT_TRUE(file.ok()) << file.error().text;
    EXPECT_EQ(file.value(), expected);
    const auto loaded = model::LoadModel(world.files, "/deployed/" + expected, world.memory);
    ASSERT_TRUE(loaded.ok()) << loaded.error().text;
    EXPECT_EQ(MarksOf(loaded.value()), MarksOf(trained)) << "it is known again";
  }
}

}  // namespace
}  // namespace freshet::deploy
