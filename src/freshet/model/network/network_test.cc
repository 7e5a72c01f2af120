// Networks as models: what a workspace keeps of them from call to call is theirs alone.

#include <gtest/gtest.h>

#include "model/model.h"
#include "model/network/description.h"
#include "model/network/zoo.h"

namespace freshet::model::network {
namespace {

std::unique_ptr<Model> Perceptron(std::int64_t hidden) {
  ModelConfig config;
  config.kind = "network";
  config.loss = "softmax";
  config.dense = true;
  config.features = 4;
  config.classes = 3;
  config.network = ToToml(MakeZoo("mlp", {4}, 3, {.hidden = hidden}).value());
  return Model::Make(config).value();
}

class NetworkTest : public testing::Test {
 protected:
  NetworkTest() { batch_.rows = 41, batch_.width = 4, batch_.dense = numbers_.data(), batch_.labels = labels_.data(); }

  std::vector<float> Predict(const Model& model, Workspace& workspace) {
    std::vector<float> scores(batch_.rows * model.scores());
    model.Predict(model.NewParameters(memory_).value(), batch_, workspace, scores);
    return scores;
  }
  // The loss of one update for each row, and the scores made before each.
  std::pair<double, std::vector<float>> Update(const Model& model, Workspace& workspace) {
    auto parameters = model.NewParameters(memory_).value();
    const auto optimizer = optimize::Optimizer::Make({.kind = "sgd"}, memory_).value();
    EXPECT_TRUE(optimizer->Follow(parameters).ok());
    std::vector<float> scores(batch_.rows * model.scores());
    const auto alone = optimize::Optimizer::Sharing::kAlone;
    const double loss = model.Update(parameters, batch_, *optimizer, workspace, scores, alone);
    return {loss, scores};
  }

  optimize::HeapMemory memory_;
  std::vector<float> numbers_ = std::vector<float>(41 * 4, 0.5f), labels_ = std::vector<float>(41, 1.0f);
  data::Batch batch_;
};

TEST_F(NetworkTest, OneWorkspaceServesSeveralByTurns) {
  Workspace shared;
  std::vector<std::unique_ptr<Model>> models;
  for (const std::int64_t hidden : {5, 30, 11}) models.push_back(Perceptron(hidden));
  for (int round = 0; round < 2; ++round)
    for (const auto& model : models) {
      Workspace own;
      EXPECT_EQ(Predict(*model, shared), Predict(*model, own));
      EXPECT_EQ(Update(*model, shared), Update(*model, own));
    }
}

TEST_F(NetworkTest, WhatIsKeptGoesWithItsNetworkThoughAnotherTakesItsPlace) {
  Workspace shared;
  for (const std::int64_t hidden : {5, 30, 11, 30, 5}) {
    const auto model = Perceptron(hidden);  // where the one before was, as allocators like it
    Workspace own;
    EXPECT_EQ(Predict(*model, shared), Predict(*model, own)) << hidden;
  }
}

TEST_F(NetworkTest, ABatchThatMemoryCannotHoldIsRefused) {
  const auto model = Perceptron(1000);
  Workspace workspace;
  const auto reserved = model->Reserve(1ULL << 40, workspace);
  ASSERT_FALSE(reserved.ok());
  EXPECT_NE(reserved.error().text.find("use a smaller batch"), std::string::npos) << reserved.error().text;
  EXPECT_TRUE(model->Reserve(32, workspace).ok());
}

}  // namespace
}  // namespace freshet::model::network
