#include "deploy/chronicle.h"

#include <gtest/gtest.h>

#include <limits>

namespace freshet::deploy {
namespace {

Chronicle::Point At(std::int64_t time, std::uint64_t observations = 0) {
  Chronicle::Point point;
  point.time = time;
  point.rows = static_cast<double>(observations);
  point.observations = observations;
  return point;
}

TEST(Chronicle, KeepsTwoWeeksInAFewHundredPoints) {
  Chronicle chronicle;
  std::int64_t now = 1'700'000'000;
  const std::int64_t began = now;
  for (; now < began + 20 * 86'400; now += now < began + 19 * 86'400 ? 300 : 10)
    chronicle.Mark(At(now, static_cast<std::uint64_t>(now - began)));
  const auto& points = chronicle.points();
  EXPECT_LT(points.size(), 600u);
  EXPECT_GT(points.front().time, began);
  EXPECT_GE(points.back().time - points.front().time, 13 * 86'400);
  std::int64_t before = 0;
  for (const auto& point : points) {
    EXPECT_GT(point.time, before);
    EXPECT_EQ(point.observations, static_cast<std::uint64_t>(point.time - began)) << "as it was then";
    before = point.time;
  }
  for (std::size_t i = points.size() - 60; i + 1 < points.size(); ++i)
    EXPECT_EQ(points[i + 1].time - points[i].time, 10) << "the last minutes are fine";
}

TEST(Chronicle, TakesOnePointInTenSeconds) {
  Chronicle chronicle;
  for (std::int64_t second = 1000; second < 1100; ++second)
    if (chronicle.Due(second)) chronicle.Mark(At(second));
  EXPECT_EQ(chronicle.points().size(), 10u);
  EXPECT_FALSE(chronicle.Due(1000)) << "time does not go back";
}

TEST(Chronicle, DoesNotBelieveTimesBeforeItsOwnOrInTheFuture) {
  Chronicle chronicle;
  EXPECT_EQ(chronicle.Plausible(500, 2000), 500);
  EXPECT_EQ(chronicle.Plausible(std::numeric_limits<std::int64_t>::min(), 2000), 2000 - 14 * 86'400);
  chronicle.Mark(At(1000));
  EXPECT_EQ(chronicle.Plausible(500, 2000), 1000);
  EXPECT_EQ(chronicle.Plausible(1500, 2000), 1500);
  EXPECT_EQ(chronicle.Plausible(99'999, 2000), 2000);
  EXPECT_EQ(chronicle.Plausible(99'999, 900), 1000) << "nor a clock that was set back";
}

TEST(Chronicle, IsTheSameAfterItWasSaved) {
  Chronicle chronicle, loaded;
  Chronicle::Point point{1000, 12, 3.25, 0.25, 0.5, -1, 13, 2, 1, 0, 77};
  chronicle.Mark(point);
  chronicle.Mark(At(1010, 14));
  ASSERT_TRUE(loaded.Load(chronicle.Save()));
  EXPECT_EQ(loaded.Save(), chronicle.Save());
  EXPECT_EQ(loaded.points()[0].kept, 77u);
  EXPECT_EQ(loaded.points()[0].auc, -1);
  EXPECT_FALSE(loaded.Load({{1, 2, 3}}));
  auto backwards = chronicle.Save();
  std::swap(backwards[0], backwards[1]);
  EXPECT_FALSE(loaded.Load(backwards));
  EXPECT_EQ(loaded.points().size(), 2u) << "what cannot be changes nothing";
}

}  // namespace
}  // namespace freshet::deploy
