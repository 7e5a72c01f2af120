#include "train/strata.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "base/thread_pool.h"
#include "model/factorization.h"

namespace freshet::train {
namespace {

struct World {
  optimize::HeapMemory memory;
  std::unique_ptr<model::Model> made;
  std::optional<optimize::Parameters> parameters;
  std::unique_ptr<optimize::Optimizer> optimizer;

  explicit World(const std::string& rule = "sgd") {
    model::ModelConfig config;
    config.kind = "factorization";
    config.loss = "squared";
    config.factors = 4;
    made = std::move(model::Model::Make(config)).value();
    parameters = std::move(made->NewParameters(memory)).value();
    EXPECT_TRUE(model().Prepare(*parameters, 50, 40).ok());
    optimize::OptimizerOptions options;
    options.kind = rule;
    options.schedule.rate = 0.05;
    optimizer = std::move(optimize::Optimizer::Make(options, memory)).value();
    EXPECT_TRUE(optimizer->Follow(*parameters).ok());
  }
  const model::Factorization& model() const { return dynamic_cast<const model::Factorization&>(*made); }
};

std::vector<model::Rating> RandomRatings(std::uint64_t seed, std::size_t count) {
  base::Random random(seed, "ratings");
  std::vector<model::Rating> ratings;
  for (std::size_t i = 0; i < count; ++i)
    ratings.push_back({static_cast<std::uint32_t>(random.Below(50)), static_cast<std::uint32_t>(random.Below(40)),
                       static_cast<float>(1 + random.Below(5))});
  return ratings;
}

Result<void> InOrder(const std::function<void(std::size_t)>& train) {
  for (std::size_t round = 0; round < strategy::Grid::kSides; ++round) train(round);
  return {};
}

TEST(Strata, GiveTheSameForAnyNumberOfThreads) {
  for (const char* const rule : {"sgd", "adagrad"}) {
    SCOPED_TRACE(rule);
    std::vector<std::uint32_t> checksums;
    std::vector<double> losses;
    for (const int threads : {1, 2, 3, 5}) {
      World world(rule);
      base::ThreadPool pool(threads);
      Strata strata(7);
      for (const model::Rating& rating : RandomRatings(1, 3000)) strata.Add(rating);
      double loss = 0;
      for (int epoch = 0; epoch < 3; ++epoch)
        loss = strata
                   .Train(pool, world.model(), *world.parameters, *world.optimizer, epoch / 3.0, (epoch + 1) / 3.0,
                          InOrder)
                   .value();
      checksums.push_back(world.parameters->Checksum());
      losses.push_back(loss);
      EXPECT_EQ(world.optimizer->step(), 9000u);
    }
    for (const std::uint32_t checksum : checksums) EXPECT_EQ(checksum, checksums[0]);
    for (const double loss : losses) EXPECT_EQ(loss, losses[0]);
  }
}

TEST(Strata, TrainOnEveryRatingOnce) {
  // At a rate too small to change a prediction, the loss of a pass is that of the starting weights.
  World world;
  const auto ratings = RandomRatings(2, 1000);
  double expected = 0;
  for (const model::Rating& rating : ratings) {
    const double error = rating.label - world.model().Score(*world.parameters, rating.user, rating.item);
    expected += 0.5 * error * error;
  }
  optimize::OptimizerOptions options;
  options.kind = "sgd";
  options.schedule.rate = 1e-12;
  const auto still = std::move(optimize::Optimizer::Make(options, world.memory)).value();
  ASSERT_TRUE(still->Follow(*world.parameters).ok());
  base::ThreadPool pool(2);
  Strata strata(7);
  for (const model::Rating& rating : ratings) strata.Add(rating);
  EXPECT_EQ(strata.size(), 1000u);
  const auto pass = [&] { return strata.Train(pool, world.model(), *world.parameters, *still, 0, 1, InOrder).value(); };
  EXPECT_NEAR(pass(), expected, 1e-4 * expected);
  for (const model::Rating& rating : ratings) strata.Add(rating);  // more may come between passes
  EXPECT_EQ(strata.size(), 2000u);
  EXPECT_NEAR(pass(), 2 * expected, 1e-4 * expected);
}

TEST(Strata, KnowTheirMean) {
  Strata strata(1);
  EXPECT_EQ(strata.mean(), 0);
  strata.Add({0, 0, 1});
  strata.Add({1, 1, 4});
  EXPECT_EQ(strata.mean(), 2.5);
  strata.Clear();
  EXPECT_EQ(strata.size(), 0u);
}

TEST(Strata, KeepTheRatingsOfSomeSidesAndCountTheOthers) {
  const auto ratings = RandomRatings(3, 500);
  std::size_t kept = 0;
  for (const strategy::Walk::Sides sides : {strategy::Walk::Sides{0, 5}, {5, 6}, {6, 16}}) {
    Strata strata(1);
    strata.Keep(sides);
    for (const model::Rating& rating : ratings) strata.Add(rating);
    EXPECT_EQ(strata.size(), 500u);
    EXPECT_LT(strata.kept(), 500u);
    kept += strata.kept();
  }
  EXPECT_EQ(kept, 500u);
}

TEST(Strata, EachCellIsMetOnceInAPassAndItemsGoFromSideToSide) {
  using strategy::Grid;
  std::vector<bool> met(Grid::kSides * Grid::kSides, false);
  for (std::size_t round = 0; round < Grid::kSides; ++round)
    for (std::size_t side = 0; side < Grid::kSides; ++side) {
      const std::size_t items = Grid::MetBy(side, round);
      EXPECT_FALSE(met[side * Grid::kSides + items]);
      met[side * Grid::kSides + items] = true;
      EXPECT_EQ(Grid::MetBy((side + 1) % Grid::kSides, round + 1), items);
    }
}

}  // namespace
}  // namespace freshet::train
