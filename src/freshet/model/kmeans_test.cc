#include <gtest/gtest.h>

#include <cmath>

#include "base/option.h"
#include "model/rows_testing.h"

namespace freshet::model {
namespace {

using optimize::Optimizer;

constexpr std::size_t kClusters = 4, kFeatures = 3;
constexpr float kCentres[kClusters][kFeatures] = {{20, 0, 0}, {0, 20, 0}, {0, 0, 20}, {-20, -20, -20}};

class KMeansTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    ModelConfig config;
    config.kind = "kmeans";
    config.loss = "squared";
    config.dense = GetParam();
    config.features = kFeatures;
    config.clusters = kClusters;
    model_ = std::move(Model::Make(config)).value();
    parameters_ = std::move(model_->NewParameters(memory_)).value();
    optimizer_ = std::move(Optimizer::Make({}, memory_)).value();
    ASSERT_TRUE(optimizer_->Follow(*parameters_).ok());
  }
  void Add(std::size_t blob, base::Random& random) {
    std::vector<float> x(kFeatures);
    for (std::size_t j = 0; j < kFeatures; ++j) x[j] = kCentres[blob][j] + static_cast<float>(random.Normal());
    if (GetParam())
      AddDense(rows_, NAN, x);
    else
      AddSparse(rows_, NAN, {{2, x[2]}, {0, x[0]}, {1, x[1]}});
  }
  double Learn() {
    scores_.resize(rows_.size());
    EXPECT_TRUE(model_->Prepare(*parameters_, rows_.batch()).ok());
    return model_->Update(*parameters_, rows_.batch(), *optimizer_, workspace_, scores_, Optimizer::Sharing::kAlone);
  }

  optimize::HeapMemory memory_;
  std::unique_ptr<Model> model_;
  std::optional<optimize::Parameters> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  data::Rows rows_;
  Workspace workspace_;
  std::vector<float> scores_;
};

TEST_P(KMeansTest, RecoversBlobsThatLieApart) {
  base::Random random(3, "blobs");
  std::vector<std::size_t> truth;
  for (std::size_t i = 0; i < 4000; ++i) {
    truth.push_back(i < kClusters ? i
                                  : random.Below(kClusters));  // one of each first: centroids start at the first rows
    Add(truth.back(), random);
  }
  Learn();
  for (std::size_t c = 0; c < kClusters; ++c)
    for (std::size_t j = 0; j < kFeatures; ++j) EXPECT_NEAR(parameters_->Row(0, c)[j], kCentres[c][j], 0.2);
  model_->Predict(*parameters_, rows_.batch(), workspace_, scores_);
  for (std::size_t r = 0; r < truth.size(); ++r) ASSERT_EQ(scores_[r], static_cast<float>(truth[r]));
  const double loss = model_->LossOf(*parameters_, rows_.batch(), workspace_, scores_);
  EXPECT_NEAR(loss / 4000, kFeatures / 2.0, 0.1);  // half the variance of each feature
}

TEST_P(KMeansTest, ACentroidIsTheMeanOfItsRows) {
  base::Random random(4, "mean");
  double sums[kFeatures] = {};
  for (std::size_t i = 0; i < 100; ++i) {
    Add(0, random);
    const std::size_t last = rows_.size() - 1;
    for (std::size_t j = 0; j < kFeatures; ++j) {
      if (GetParam())
        sums[j] += rows_.dense[last * kFeatures + j];
      else
        for (std::size_t e = 0; e < 3; ++e)
          sums[j] += rows_.indices[last * 3 + e] == j ? rows_.values[last * 3 + e] : 0.0f;
    }
  }
  // With every other centroid placed far away, all rows belong to the first.
  for (std::size_t c = 0; c < kClusters; ++c) {
    std::fill_n(parameters_->Row(0, c), kFeatures, c == 0 ? 19.0f : -1e6f);
    *parameters_->Row(1, c) = c == 0 ? 0.5f : 1.0f;
  }
  Learn();
  for (std::size_t j = 0; j < kFeatures; ++j)
    EXPECT_NEAR(parameters_->Row(0, 0)[j], (sums[j] + 0.5 * 19) / 100.5, 1e-3);
  EXPECT_NEAR(*parameters_->Row(1, 0), 100.5f, 1e-3);
}

TEST_P(KMeansTest, FewerDifferentRowsThanClustersLeaveTheRestUnplaced) {
  base::Random random(5, "few"), again(5, "few");
  Add(0, random);
  Add(0, again);
  Learn();
  EXPECT_EQ(*parameters_->Row(1, 0), 2.0f);
  for (std::size_t c = 1; c < kClusters; ++c) EXPECT_EQ(*parameters_->Row(1, c), 0.0f);
  EXPECT_EQ(scores_, (std::vector<float>{0, 0}));
}

INSTANTIATE_TEST_SUITE_P(Rows, KMeansTest, testing::Bool(),
                         [](const auto& param) { return param.param ? "Dense" : "Sparse"; });

TEST(KMeans, RefusesFeaturesBeyondThoseItWasMadeFor) {
  ModelConfig config;
  config.kind = "kmeans";
  config.loss = "squared";
  config.features = 10;
  const auto model = std::move(Model::Make(config)).value();
  optimize::HeapMemory memory;
  auto parameters = std::move(model->NewParameters(memory)).value();
  data::Rows rows;
  AddSparse(rows, 0, {{10, 1.0f}});
  const auto refused = model->Prepare(parameters, rows.batch());
  EXPECT_EQ(refused.error().code, Code::kBadInput);
  EXPECT_NE(refused.error().text.find(Option("features")), std::string::npos);
}

}  // namespace
}  // namespace freshet::model
