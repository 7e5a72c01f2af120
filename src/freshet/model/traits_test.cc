#include <gtest/gtest.h>

#include "model/model.h"
#include "model/network/description.h"
#include "model/network/zoo.h"
#include "model/ratings.h"

namespace freshet::model {
namespace {

std::unique_ptr<Model> Made(const ModelConfig& config) { return std::move(Model::Make(config).value()); }

std::unique_ptr<Model> MadeNetwork(const char* name, network::Shape input) {
  ModelConfig config;
  config.kind = "network";
  config.loss = "softmax";
  config.dense = true;
  config.features = 1;
  for (const std::int64_t extent : input) config.features *= static_cast<std::uint64_t>(extent);
  config.classes = 10;
  config.network = network::ToToml(network::MakeZoo(name, std::move(input), 10).value());
  return Made(config);
}

TEST(Traits, OfALinearModelFollowFromItsRowsAndScores) {
  const Traits sparse = Made({})->traits();
  EXPECT_TRUE(sparse.shares_updates && sparse.by_lbfgs && sparse.weighs_features);
  EXPECT_FALSE(sparse.uses_team || sparse.own_rule || sparse.answers_clusters || sparse.learns_slowly);
  const Traits dense = Made({.loss = "softmax", .dense = true, .features = 3, .classes = 5, .network = {}})->traits();
  EXPECT_FALSE(dense.shares_updates || dense.weighs_features);
  EXPECT_EQ(dense.met_by_entry, 5u);
}

TEST(Traits, OnlyAModelOfRatingsRecommends) {
  const auto ratings = Made({.kind = "factorization", .loss = "squared", .factors = 7, .network = {}});
  EXPECT_NE(ratings->ratings(), nullptr);
  EXPECT_TRUE(ratings->traits().learns_slowly && ratings->traits().in_sessions);
  EXPECT_EQ(ratings->traits().met_by_entry, 8u);
  EXPECT_EQ(Made({})->ratings(), nullptr);
  EXPECT_EQ(Made({.kind = "fm", .network = {}})->ratings(), nullptr);
}

TEST(Traits, ClustersAreLearnedByARuleOfTheirOwn) {
  const Traits traits =
      Made({.kind = "kmeans", .loss = "squared", .dense = true, .features = 2, .network = {}})->traits();
  EXPECT_TRUE(traits.own_rule && traits.answers_clusters);
  EXPECT_FALSE(traits.by_lbfgs || traits.shares_updates);
  EXPECT_EQ(traits.met_by_entry, 8u);
}

TEST(Traits, ANetworkSumsOverWorkersWhereItHasBatchNorm) {
  const Traits plain = MadeNetwork("mlp", {20})->traits(), normed = MadeNetwork("resnet20", {3, 32, 32})->traits();
  EXPECT_TRUE(plain.uses_team && normed.uses_team);
  EXPECT_FALSE(plain.sums_over_workers);
  EXPECT_TRUE(normed.sums_over_workers);
}

// Ratings are counted once: a second mean would forget the first.
TEST(Traits, RatingsKnowTheirMeanOnceItWasGiven) {
  const auto model = Made({.kind = "factorization", .loss = "squared", .network = {}});
  optimize::HeapMemory memory;
  auto parameters = std::move(model->NewParameters(memory).value());
  EXPECT_FALSE(model->ratings()->KnowsMean(parameters));
  model->ratings()->StartMean(parameters, 3.5, 2);
  EXPECT_TRUE(model->ratings()->KnowsMean(parameters));
  EXPECT_EQ(parameters.Row(0, 0)[0], 3.5f);
}

}  // namespace
}  // namespace freshet::model
