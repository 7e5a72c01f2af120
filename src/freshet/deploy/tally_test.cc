#include "deploy/tally.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace freshet::deploy {
namespace {

TEST(Tally, CountsWhatCameAlsoWhereNothingIsLearned) {
  Tally tally;
  tally.Add(3, /*learns=*/true);
  tally.Add(4, /*learns=*/false);
  EXPECT_EQ(tally.learned, 3u);
  EXPECT_EQ(tally.since_version, 7u);
  EXPECT_EQ(tally.since_retraining, 7u);
}

TEST(Tally, IsTheSameAfterItWasSaved) {
  nlohmann::ordered_json vitals;
  Tally{1, 2, 3, 4, 0.25}.Save(vitals);
  EXPECT_EQ(vitals.dump(), R"({"counts":[1,2,3,4],"error_after_retraining":0.25})") << "versions on disks have this";
  Tally loaded;
  ASSERT_TRUE(loaded.Load(vitals).ok());
  EXPECT_EQ(loaded.learned, 1u);
  EXPECT_EQ(loaded.since_version, 2u);
  EXPECT_EQ(loaded.since_retraining, 3u);
  EXPECT_EQ(loaded.iterations, 4u);
  EXPECT_EQ(loaded.error_after_retraining, 0.25);
  vitals["counts"] = {1, 2};
  EXPECT_EQ(loaded.Load(vitals).error().code, Code::kCorrupt);
}

}  // namespace
}  // namespace freshet::deploy
