#include "train/standing.h"

#include <gtest/gtest.h>

#include <memory>

namespace freshet::train {
namespace {

class StandingTest : public testing::Test {
 protected:
  StandingTest() {
    model::ModelConfig config;
    config.dense = true;
    config.features = description_.features = 2;
    description_.dense = true;
    model_ = std::move(model::Model::Make(config)).value();
  }
  Standing Make() const { return {*model_, description_, 0}; }

  data::Description description_;
  std::unique_ptr<model::Model> model_;
};

TEST_F(StandingTest, FindsItsPlaceAgain) {
  for (const bool in_a_lot : {false, true}) {
    Standing before = Make(), after = Make();
    before.position = {1, 2, 3, 4, 5};
    before.windows = 6;
    before.window_begin = 0.1;
    before.progress = 1.0 / 3;
    if (in_a_lot) before.lot = {.due = 9, .done = 7, .from = 0.25, .to = 0.5};
    after.lot.due = 100;
    after.LoadPlace(before.Place());
    EXPECT_EQ(after.position.file, 1u);
    EXPECT_EQ(after.position.block, 5u);
    EXPECT_EQ(after.windows, 6u);
    EXPECT_EQ(after.window_begin, 0.1);
    EXPECT_EQ(after.progress, 1.0 / 3);
    EXPECT_EQ(after.lot.due, before.lot.due);
    EXPECT_EQ(after.lot.progress(), before.lot.progress());
    EXPECT_EQ(after.Place(), before.Place());
  }
}

TEST_F(StandingTest, KnowsAgainWhatItHasSeenAndRefusesDamagedSums) {
  Standing before = Make(), after = Make();
  before.seen.AddLoss(3, 0.7, 1.4);
  before.rows = 13;
  before.joined_rows = 10;
  ASSERT_TRUE(after.LoadCounts(before.Counts()));
  EXPECT_EQ(after.seen.Save(), before.seen.Save());
  EXPECT_EQ(after.rows, 13u);
  EXPECT_EQ(after.joined_rows, 10u);
  EXPECT_FALSE(after.LoadCounts(R"({"seen": [1, 2], "rows": 13, "joined_rows": 10})"));
}

TEST_F(StandingTest, RowsThatWaitAreTheWindowOrWhatIsLeftOfTheLot) {
  Standing standing = Make();
  const float labels[] = {0, 1, 0, 1}, values[] = {0, 0, 1, 1, 2, 2, 3, 3};
  const std::uint64_t samples[] = {0, 1, 2, 3};
  data::Batch rows;
  rows.rows = 4;
  rows.labels = labels;
  rows.samples = samples;
  rows.dense = values;
  rows.width = 2;
  standing.window.Add(rows, 0);
  EXPECT_EQ(standing.Waiting().rows, 1u);
  standing.lot = {.rows = rows.Slice(1, 4), .due = 3, .done = 2, .before = 1, .from = 0, .to = 1};
  ASSERT_EQ(standing.Waiting().rows, 2u);  // one that is due, and one behind
  EXPECT_EQ(standing.Waiting().dense[0], 2);
  EXPECT_DOUBLE_EQ(standing.lot.progress(), 2.0 / 3);
}

}  // namespace
}  // namespace freshet::train
