#include "model/factorization.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/rows_testing.h"

namespace freshet::model {
namespace {

using optimize::Optimizer;
using optimize::Parameters;

class FactorizationTest : public testing::Test {
 protected:
  void Make(std::uint64_t users, std::uint64_t items, std::uint64_t seed) {
    ModelConfig config;
    config.kind = "factorization";
    config.loss = "squared";
    config.factors = 4;
    made_ = std::move(Model::Make(config)).value();
    parameters_ = std::move(made_->NewParameters(memory_)).value();
    ASSERT_TRUE(model().Prepare(*parameters_, users, items).ok());
    base::Random random(seed, "factorization");
    Randomise(random, *parameters_);
  }
  const Factorization& model() const { return dynamic_cast<const Factorization&>(*made_); }

  optimize::HeapMemory memory_;
  std::unique_ptr<Model> made_;
  std::optional<Parameters> parameters_;
  Workspace workspace_;
};

TEST_F(FactorizationTest, RecommendsWhatSortingEveryItemWould) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "recommend");
    const std::uint64_t users = 1 + random.Below(4), items = random.Below(30);
    Make(users, items, seed);
    if (seed % 3 == 0)  // many equal scores
      for (std::uint64_t item = 0; item < items; ++item) {
        *parameters_->Row(Factorization::kItemBias, item) = static_cast<float>(random.Below(3));
        std::fill_n(parameters_->Row(Factorization::kItemFactors, item), 4, 0.0f);
      }
    const auto user = static_cast<std::uint32_t>(seed % 5 == 4 ? data::kUnseen : random.Below(users));
    std::vector<std::uint32_t> seen;
    for (std::uint32_t item = 0; item < items; ++item)
      if (random.Below(3) == 0) seen.push_back(item);
    const std::size_t k = random.Below(12);
    std::vector<std::pair<std::uint32_t, float>> expected;
    for (std::uint32_t item = 0; item < items; ++item)
      if (!std::binary_search(seen.begin(), seen.end(), item))
        expected.emplace_back(item, model().Score(*parameters_, user, item));
    std::stable_sort(expected.begin(), expected.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    expected.resize(std::min(expected.size(), k));
    ASSERT_EQ(model().Recommend(*parameters_, user, seen, k), expected);
  }
}

TEST_F(FactorizationTest, UpdateRatingsByPlainSgdIsItsTextbookFormula) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    Make(5, 4, seed);
    optimize::OptimizerOptions options;
    options.kind = "sgd";
    options.schedule.rate = 0.05;
    options.l2 = 0.1;
    const auto optimizer = std::move(Optimizer::Make(options, memory_)).value();
    ASSERT_TRUE(optimizer->Follow(*parameters_).ok());
    std::vector<std::vector<double>> blocks;
    for (std::size_t b = 0; b < parameters_->blocks(); ++b) {
      const auto values = parameters_->Gather(b);
      blocks.emplace_back(values.begin(), values.end());
    }
    base::Random random(seed, "ratings");
    std::vector<Rating> ratings;
    for (int i = 0; i < 50; ++i)
      ratings.push_back({static_cast<std::uint32_t>(random.Below(5)), static_cast<std::uint32_t>(random.Below(4)),
                         static_cast<float>(1 + random.Below(5))});
    const double loss = model().UpdateRatings(*parameters_, ratings, *optimizer, workspace_);
    double expected_loss = 0;
    for (const Rating& rating : ratings) {
      double& user_bias = blocks[Factorization::kUserBias][rating.user];
      double& item_bias = blocks[Factorization::kItemBias][rating.item];
      double* const p = &blocks[Factorization::kUserFactors][rating.user * 4];
      double* const q = &blocks[Factorization::kItemFactors][rating.item * 4];
      double error = rating.label - blocks[0][0] - user_bias - item_bias;
      for (int j = 0; j < 4; ++j) error -= p[j] * q[j];
      expected_loss += 0.5 * error * error;
      user_bias += 0.05 * (error - 0.1 * user_bias);
      item_bias += 0.05 * (error - 0.1 * item_bias);
      for (int j = 0; j < 4; ++j) {
        const double before = p[j];
        p[j] += 0.05 * (error * q[j] - 0.1 * p[j]);
        q[j] += 0.05 * (error * before - 0.1 * q[j]);
      }
    }
    EXPECT_NEAR(loss, expected_loss, 1e-4 * expected_loss);
    EXPECT_EQ(optimizer->step(), ratings.size());
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const auto values = parameters_->Gather(b);
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_NEAR(values[i], blocks[b][i], 1e-4 * std::max(1.0, std::abs(blocks[b][i])));
    }
  }
}

TEST_F(FactorizationTest, TheMeanFollowsTheRatings) {
  ModelConfig config;
  config.kind = "factorization";
  config.loss = "squared";
  made_ = std::move(Model::Make(config)).value();
  parameters_ = std::move(made_->NewParameters(memory_)).value();
  const auto optimizer = std::move(Optimizer::Make({}, memory_)).value();
  data::Rows rows;
  double sum = 0;
  base::Random random(1, "mean");
  for (int i = 0; i < 100; ++i) {
    const auto label = static_cast<float>(1 + random.Below(5));
    sum += label;
    AddRating(rows, static_cast<std::uint32_t>(random.Below(10)), static_cast<std::uint32_t>(random.Below(10)), label);
  }
  ASSERT_TRUE(model().Prepare(*parameters_, rows.batch()).ok());
  ASSERT_TRUE(optimizer->Follow(*parameters_).ok());
  std::vector<float> scores(100);
  model().Update(*parameters_, rows.batch(), *optimizer, workspace_, scores, Optimizer::Sharing::kAlone);
  EXPECT_NEAR(parameters_->Row(0, 0)[0], sum / 100, 1e-4);
  EXPECT_EQ(parameters_->Row(0, 0)[1], 100.0f);
  EXPECT_NEAR(model().Score(*parameters_, data::kUnseen, data::kUnseen), sum / 100, 1e-4);
}

TEST_F(FactorizationTest, GrowsForUsersAndItemsItMeets) {
  Make(2, 3, 1);
  const auto before = parameters_->Gather(Factorization::kUserFactors);
  data::Rows rows;
  AddRating(rows, 9, 1, 3);
  ASSERT_TRUE(model().Prepare(*parameters_, rows.batch()).ok());
  EXPECT_EQ(parameters_->rows(Factorization::kUserFactors), 10u);
  EXPECT_EQ(parameters_->rows(Factorization::kUserBias), 10u);
  EXPECT_EQ(parameters_->rows(Factorization::kItemFactors), 3u);
  auto after = parameters_->Gather(Factorization::kUserFactors);
  after.resize(before.size());
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace freshet::model
