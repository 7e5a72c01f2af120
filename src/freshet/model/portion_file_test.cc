// Portions of a model, from the file of the whole.

#include <gtest/gtest.h>

#include "base/scratch_testing.h"
#include "model/model_file.h"
#include "optimize/counting_memory_testing.h"

namespace freshet::model {
namespace {

using optimize::Portion;

// A trained linear model of four classes over five numbers, in a file.
class PortionFileTest : public testing::Test {
 protected:
  PortionFileTest() {
    const ModelConfig config{.loss = "softmax", .dense = true, .features = 5, .classes = 4, .network = {}};
    model_ = std::move(Model::Make(config).value());
    whole_ = std::move(model_->NewParameters(memory_).value());
    for (std::size_t b = 0; b < whole_->blocks(); ++b)
      for (std::size_t i = 0; i < whole_->Values(b).size(); ++i) whole_->Values(b)[i] = static_cast<float>(100 * b + i);
    optimizer_ = optimize::Optimizer::Make({.kind = "adam", .schedule = {}}, memory_).value();
    EXPECT_TRUE(optimizer_->Follow(*whole_).ok());
    for (std::size_t b = 0; b < whole_->blocks(); ++b)
      for (std::size_t i = 0; i < optimizer_->state().Values(b).size(); ++i)
        optimizer_->state().Values(b)[i] = static_cast<float>(1000 * b + i);
    data::Description description;
    description.format = "csv";
    description.dense = true;
    description.features = 5;
    const Sums sums = Sums::Of(*whole_, *optimizer_);
    EXPECT_TRUE(SaveModel(files_, Path(), *model_, *whole_, description, {}, {}, &sums).ok());
  }
  std::string Path() { return scratch_ / "model"; }

  base::ScratchDirectory scratch_;
  base::PosixFiles files_;
  optimize::HeapMemory memory_;
  std::unique_ptr<Model> model_;
  std::optional<optimize::Parameters> whole_;
  std::unique_ptr<optimize::Optimizer> optimizer_;
};

TEST_F(PortionFileTest, ABlockIsLoadedWithoutTheOthers) {
  optimize::CountingMemory memory;
  const TrainedModel loaded = LoadModel(files_, Path(), memory, Portion::OfBlocks(1, 2)).value();
  EXPECT_FALSE(loaded.parameters.held(0));
  EXPECT_EQ(loaded.parameters.rows(0), 0u);
  EXPECT_EQ(loaded.parameters.Gather(1), whole_->Gather(1));
  EXPECT_EQ(memory.committed, 4 * sizeof(float));
}

TEST_F(PortionFileTest, RowsAndColumnsAreCutOutOfTheTensor) {
  const Portion rows{{{{.block = 0, .first_row = 1, .rows = 2}}}};
  EXPECT_EQ(LoadModel(files_, Path(), memory_, rows).value().parameters.Gather(0),
            (std::vector<float>{5, 6, 7, 8, 9, 10, 11, 12, 13, 14}));
  const Portion columns{{{{.block = 0, .first_column = 3}}}};
  EXPECT_EQ(LoadModel(files_, Path(), memory_, columns).value().parameters.Gather(0),
            (std::vector<float>{3, 4, 8, 9, 13, 14, 18, 19}));
}

// A row of adam's state is the first slot of all columns, then the second.
TEST_F(PortionFileTest, SumsOfARangeGoToItsOptimizer) {
  const Portion portion{{{{.block = 0, .first_row = 2, .rows = 1, .first_column = 1, .columns = 2}}}};
  TrainedModel loaded = LoadModel(files_, Path(), memory_, portion).value();
  const auto optimizer = optimize::Optimizer::Make({.kind = "adam", .schedule = {}}, memory_).value();
  ASSERT_TRUE(optimizer->Follow(loaded.parameters).ok());
  ASSERT_TRUE(loaded.sums->Give(loaded.parameters, *optimizer));
  EXPECT_EQ(optimizer->state().Gather(0), (std::vector<float>{21, 22, 26, 27}));
  EXPECT_EQ(optimizer->state().size(), 4u);
}

TEST_F(PortionFileTest, WhatAPortionSavesItLoads) {
  const Portion portion{{{{.block = 0, .first_row = 1, .rows = 2, .columns = 2}}}};
  const TrainedModel loaded = LoadModel(files_, Path(), memory_, portion).value();
  std::vector<data::Tensor> tensors;
  AddBlocks(loaded.parameters, Part::kRows, "mine.", tensors);
  ASSERT_EQ(tensors.size(), 1u);
  base::StringFile bytes;
  ASSERT_TRUE(data::WriteTensors(bytes, tensors, {}).ok());
  const auto file = data::TensorFile::Parse(bytes.text, "mine").value();
  optimize::Parameters again = model_->NewParameters(memory_, 0, portion).value();
  ASSERT_TRUE(LoadBlocks(file, Part::kRows, "mine.", again).ok());
  EXPECT_EQ(again.Gather(0), (std::vector<float>{5, 6, 10, 11}));
}

}  // namespace
}  // namespace freshet::model
