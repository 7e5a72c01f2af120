#include "train/early_stopping.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/files.h"
#include "base/scratch_testing.h"

namespace freshet::train {
namespace {

// Parameters of a model with four weights, all of them `value`.
class EarlyStoppingTest : public testing::Test {
 protected:
  EarlyStoppingTest() {
    model::ModelConfig config;
    config.dense = true;
    config.features = 4;
    model_ = std::move(model::Model::Make(config)).value();
  }
  optimize::Parameters All(float value) {
    auto parameters = model_->NewParameters(memory_).value();
    for (std::size_t b = 0; b < parameters.blocks(); ++b)
      for (float& weight : parameters.Values(b)) weight = value;
    return parameters;
  }
  static float Of(const optimize::Parameters& parameters) { return parameters.Values(0)[0]; }

  optimize::HeapMemory memory_;
  std::unique_ptr<model::Model> model_;
};

TEST_F(EarlyStoppingTest, StopsAfterSoManyEpochsWithoutABetterLossAndKeepsTheBest) {
  EarlyStopping stopping(2, *model_, memory_);
  const std::vector<double> losses = {0.5, 0.7, 0.4, 0.4, std::nan("")};
  for (std::size_t i = 0; i < losses.size(); ++i) {
    EXPECT_FALSE(stopping.stops());
    ASSERT_TRUE(stopping.Add(losses[i], All(static_cast<float>(i))).ok());
  }
  EXPECT_TRUE(stopping.stops());
  ASSERT_NE(stopping.best(), nullptr);
  EXPECT_EQ(Of(*stopping.best()), 2);  // the same loss again is no better
  EXPECT_EQ(stopping.record().best_loss, 0.4);
  EXPECT_EQ(stopping.record().losses.size(), 5u);
}

TEST_F(EarlyStoppingTest, WithoutPatienceNeverStopsAndKeepsNothing) {
  EarlyStopping stopping(0, *model_, memory_);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(stopping.Add(i, All(1)).ok());
  EXPECT_FALSE(stopping.stops());
  EXPECT_EQ(stopping.best(), nullptr);
}

TEST_F(EarlyStoppingTest, GoesOnFromWhatWasSavedAsIfNothingHadHappened) {
  EarlyStopping stopping(2, *model_, memory_);
  ASSERT_TRUE(stopping.Add(0.5, All(1)).ok());
  ASSERT_TRUE(stopping.Add(0.6, All(2)).ok());
  const base::ScratchDirectory scratch;
  base::PosixFiles files;
  std::vector<data::Tensor> tensors;
  stopping.Save(tensors);
  ASSERT_TRUE(base::WriteAtomic(files, scratch / "saved", [&](base::OutputFile& file) {
                return data::WriteTensors(file, tensors, {});
              }).ok());
  EarlyStopping resumed(2, *model_, memory_);
  ASSERT_TRUE(resumed.Load(stopping.record(), data::TensorFile::Read(files, scratch / "saved").value()).ok());
  EXPECT_FALSE(resumed.stops());
  ASSERT_TRUE(resumed.Add(0.55, All(3)).ok());
  EXPECT_TRUE(resumed.stops());
  EXPECT_EQ(Of(*resumed.best()), 1);
  EXPECT_EQ(resumed.record().losses, (std::vector<double>{0.5, 0.6, 0.55}));
}

}  // namespace
}  // namespace freshet::train
