#include "train/evaluation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "base/str.h"

namespace freshet::train {
namespace {

using Kind = data::Labels::Kind;

struct Scored {
  std::vector<float> scores, labels, weights;
  data::Batch batch() const {
    data::Batch batch;
    batch.rows = labels.size();
    batch.labels = labels.data();
    batch.weights = weights.empty() ? nullptr : weights.data();
    return batch;
  }
};

Scored RandomScores(std::uint64_t seed) {
  base::Random random(seed, "scores");
  Scored scored;
  const std::uint64_t rows = 2 + random.Below(60);
  for (std::uint64_t i = 0; i < rows; ++i) {
    const auto label = static_cast<float>(random.Below(2));
    const double score = random.Normal() + label;
    scored.labels.push_back(label);
    scored.scores.push_back(static_cast<float>(seed % 2 == 0 ? std::round(2 * score) / 2 : score));  // often equal
    if (seed % 3 == 0) scored.weights.push_back(static_cast<float>(random.Uniform(0.1, 3)));
  }
  return scored;
}

// The share of pairs of a positive and a negative row that the scores put in order; equal scores count half.
std::optional<double> ExactAuc(const Scored& scored) {
  double pairs = 0, right = 0;
  for (std::size_t i = 0; i < scored.labels.size(); ++i)
    for (std::size_t j = 0; j < scored.labels.size(); ++j) {
      if (scored.labels[i] <= 0 || scored.labels[j] > 0) continue;
      const double weight = scored.weights.empty() ? 1.0 : static_cast<double>(scored.weights[i]) * scored.weights[j];
      pairs += weight;
      right += scored.scores[i] > scored.scores[j] ? weight : scored.scores[i] == scored.scores[j] ? weight / 2 : 0;
    }
  if (pairs == 0) return std::nullopt;
  return right / pairs;
}

TEST(Evaluation, AucIsThatOfAllPairs) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    const Scored scored = RandomScores(seed);
    Evaluation evaluation(Kind::kBinary, Evaluation::Extent::kWithAuc);
    evaluation.Add(scored.batch(), scored.scores, 0);
    const auto exact = ExactAuc(scored), got = evaluation.auc();
    ASSERT_EQ(got.has_value(), exact.has_value());
    ASSERT_NEAR(got.value_or(-1), exact.value_or(-1), 1e-3);
  }
}

TEST(Evaluation, AucOrdersScoresOfAnySizeAndSign) {
  Scored scored;
  scored.scores = {-1e30f, -5, -1e-20f, 0, 1e-20f, 3, 1e30f};
  scored.labels = {0, 0, 0, 0, 1, 1, 1};
  Evaluation right(Kind::kBinary, Evaluation::Extent::kWithAuc);
  right.Add(scored.batch(), scored.scores, 0);
  EXPECT_EQ(right.auc(), 1.0);
  for (float& label : scored.labels) label = 1 - label;
  Evaluation wrong(Kind::kBinary, Evaluation::Extent::kWithAuc);
  wrong.Add(scored.batch(), scored.scores, 0);
  EXPECT_EQ(wrong.auc(), 0.0);
  EXPECT_FALSE(Evaluation(Kind::kBinary).auc().has_value());  // not asked for
}

TEST(Evaluation, CountsWeightedErrors) {
  Scored scored;
  scored.scores = {1, -1, 2, -2};
  scored.labels = {1, 1, 0, 0};
  scored.weights = {1, 2, 3, 4};
  Evaluation evaluation(Kind::kBinary);
  evaluation.Add(scored.batch(), scored.scores, 7);
  EXPECT_DOUBLE_EQ(*evaluation.error_rate(), 0.5);
  EXPECT_DOUBLE_EQ(evaluation.loss(), 0.7);
  EXPECT_EQ(evaluation.rows(), 4u);
  EXPECT_FALSE(evaluation.rmse().has_value());
}

TEST(Evaluation, CountsErrorsOfSeveralClasses) {
  Scored scored;
  scored.scores = {3, 1, 2, 0, 5, 1, 1, 2, 3};
  scored.labels = {0, 2, 2};
  Evaluation evaluation(Kind::kClasses);
  evaluation.Add(scored.batch(), scored.scores, 0);
  EXPECT_NEAR(*evaluation.error_rate(), 1.0 / 3, 1e-12);
  EXPECT_FALSE(evaluation.auc().has_value());
}

TEST(Evaluation, TakesTheRootOfMeanSquares) {
  Scored scored;
  scored.scores = {1, 2};
  scored.labels = {4, -2};
  Evaluation evaluation(Kind::kReal);
  evaluation.Add(scored.batch(), scored.scores, 12.5);
  EXPECT_NEAR(*evaluation.rmse(), std::sqrt(12.5), 1e-6);
  evaluation.AddLoss(2, 0, 0);
  EXPECT_NEAR(*evaluation.rmse(), 2.5, 1e-6);
  EXPECT_FALSE(evaluation.error_rate().has_value());
}

TEST(Evaluation, IsInTheUnitsOfTheDataAndKnowsWhatTheMeanWouldDo) {
  Scored scored;
  scored.scores = {1, 0};
  scored.labels = {1.5f, -0.5f};
  Evaluation evaluation(Kind::kReal, Evaluation::Extent::kSums, data::Target(180'000, 1000));
  evaluation.Add(scored.batch(), scored.scores, 0.25);
  EXPECT_NEAR(*evaluation.rmse(), 500, 1e-6);
  EXPECT_NEAR(evaluation.total_loss(), 250'000, 1e-3);
  EXPECT_NEAR(evaluation.loss(), 125'000, 1e-3);
  EXPECT_NEAR(*evaluation.rmse_of_mean(), 1000, 1e-6);
  Evaluation joined = evaluation;
  joined.Add(evaluation);
  EXPECT_NEAR(*joined.rmse_of_mean(), 1000, 1e-6);
  evaluation.AddLoss(1, 0.5, 1);  // of labels that are not told
  EXPECT_FALSE(evaluation.rmse_of_mean().has_value());
}

TEST(Evaluation, OfPartsJoinedIsThatOfTheWhole) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    const Scored scored = RandomScores(seed);
    const std::size_t cut = scored.labels.size() / 3;
    Evaluation whole(Kind::kBinary, Evaluation::Extent::kWithAuc), first = whole, second = whole;
    const std::span<const float> scores(scored.scores);
    whole.Add(scored.batch(), scores, 3);
    first.Add(scored.batch().Slice(0, cut), scores.first(cut), 1);
    second.Add(scored.batch().Slice(cut, scored.labels.size()), scores.subspan(cut), 2);
    first.Add(second);
    EXPECT_EQ(first.rows(), whole.rows());
    EXPECT_NEAR(*first.error_rate(), *whole.error_rate(), 1e-12);
    EXPECT_NEAR(first.loss(), whole.loss(), 1e-12);
    EXPECT_NEAR(first.auc().value_or(-1), whole.auc().value_or(-1), 1e-6);
    Evaluation loaded(Kind::kBinary);
    EXPECT_TRUE(loaded.Load(whole.Save()));
    EXPECT_EQ(loaded.Save(), whole.Save());
  }
  EXPECT_FALSE(Evaluation(Kind::kBinary).Load({1, 2, 3}));
}

TEST(Evaluation, OfNothingSaysNothing) {
  const Evaluation evaluation(Kind::kBinary, Evaluation::Extent::kWithAuc);
  EXPECT_EQ(evaluation.loss(), 0);
  EXPECT_FALSE(evaluation.error_rate().has_value());
  EXPECT_FALSE(evaluation.auc().has_value());
}

}  // namespace
}  // namespace freshet::train
