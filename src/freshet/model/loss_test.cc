#include "model/loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace freshet::model {
namespace {

double LossAt(const Loss& loss, std::vector<float> scores, float label) {
  std::vector<float> deltas(scores.size());
  return loss.Evaluate(scores, label, deltas);
}

TEST(Loss, DerivativeIsThatOfTheLoss) {
  for (const std::string& name : LossNames()) {
    const Loss& loss = *FindLoss(name).value();
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      SCOPED_TRACE(Str(name, " seed ", seed));
      base::Random random(seed, name);
      std::vector<float> scores(name == "softmax" ? 4 : 1), deltas(scores.size());
      for (float& score : scores) score = static_cast<float>(3 * random.Normal());
      const auto label = static_cast<float>(name == "softmax" ? random.Below(4) : random.Below(2));
      if (name == "hinge" && std::abs(1 - (label > 0 ? scores[0] : -scores[0])) < 0.05f) continue;
      loss.Evaluate(scores, label, deltas);
      for (std::size_t k = 0; k < scores.size(); ++k) {
        constexpr float kStep = 0.01f;
        auto up = scores, down = scores;
        up[k] += kStep;
        down[k] -= kStep;
        const double slope = (LossAt(loss, up, label) - LossAt(loss, down, label)) / (up[k] - down[k]);
        ASSERT_NEAR(deltas[k], slope, 1e-3 + 1e-3 * std::abs(slope));
      }
    }
  }
}

TEST(Loss, HasTheKnownValues) {
  const auto at = [](const char* name, std::vector<float> scores, float label) {
    return LossAt(*FindLoss(name).value(), scores, label);
  };
  EXPECT_NEAR(at("logistic", {0}, 1), std::log(2), 1e-6);
  EXPECT_NEAR(at("logistic", {2}, 0), std::log(1 + std::exp(2)), 1e-6);
  EXPECT_NEAR(at("hinge", {0.25f}, 1), 0.75, 1e-6);
  EXPECT_EQ(at("hinge", {2}, 1), 0);
  EXPECT_NEAR(at("squared", {3}, 1), 2, 1e-6);
  EXPECT_NEAR(at("softmax", {1, 1, 1}, 2), std::log(3), 1e-6);
}

TEST(Loss, StaysFiniteForScoresOfAnySize) {
  for (const char* const name : {"logistic", "hinge", "softmax"}) {
    SCOPED_TRACE(name);
    const Loss& loss = *FindLoss(name).value();
    for (const float size : {1e3f, 1e10f, 1e30f}) {
      std::vector<float> scores(std::string_view(name) == "softmax" ? 3 : 1, -size), deltas(scores.size());
      scores[0] = size;
      for (const float label : {0.0f, 1.0f}) {
        EXPECT_TRUE(std::isfinite(loss.Evaluate(scores, label, deltas)));
        for (const float delta : deltas) EXPECT_LE(std::abs(delta), 1.0f);
      }
      loss.Link(scores);
      for (const float score : scores) EXPECT_TRUE(std::isfinite(score));
    }
  }
}

TEST(Loss, LinkMakesProbabilities) {
  std::vector<float> one = {0.5f}, three = {1, 2, 3};
  FindLoss("logistic").value()->Link(one);
  EXPECT_NEAR(one[0], 1 / (1 + std::exp(-0.5)), 1e-6);
  FindLoss("softmax").value()->Link(three);
  EXPECT_NEAR(three[0] + three[1] + three[2], 1, 1e-6);
  EXPECT_NEAR(three[2] / three[1], std::exp(1), 1e-4);
}

TEST(Loss, EveryTaskHasACustomaryLossThatExists) {
  for (const auto task : {data::Labels::Kind::kBinary, data::Labels::Kind::kClasses, data::Labels::Kind::kReal}) {
    const auto loss = FindLoss(DefaultLoss(task));
    ASSERT_TRUE(loss.ok());
    EXPECT_EQ(loss.value()->task(), task);
  }
  EXPECT_NE(FindLoss("lost").error().text.find("logistic, hinge, squared, softmax"), std::string::npos);
}

}  // namespace
}  // namespace freshet::model
