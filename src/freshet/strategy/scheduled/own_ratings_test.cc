#include "strategy/scheduled/own_ratings.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace freshet::strategy::scheduled {
namespace {

struct Met {
  std::uint32_t other = 0;
  double label = 0;
  bool operator==(const Met& met) const = default;
};
std::vector<Met> MetBy(const OwnRatings& ratings, Side side, std::uint32_t row) {
  std::vector<Met> met;
  ratings.Visit(side, row, [&](std::size_t at, std::uint32_t other) { met.push_back({other, ratings.error(at)}); });
  return met;
}

TEST(OwnRatings, EachMemberHasAllOfItsRowsInTheSameOrderAndOfOthersWhatItMeets) {
  base::Random random(1, "ratings");
  std::vector<model::Rating> given;
  for (int i = 0; i < 500; ++i)
    given.push_back({static_cast<std::uint32_t>(random.Below(40)), static_cast<std::uint32_t>(random.Below(30)),
                     static_cast<float>(random.Below(5))});
  OwnRatings all(3, {});
  for (const model::Rating& rating : given) all.Add(rating);
  all.Arrange();
  EXPECT_EQ(all.kept(), given.size());
  for (const std::size_t members : {2, 3, 16}) {
    std::vector<int> owners[2] = {std::vector<int>(40, 0), std::vector<int>(30, 0)};
    for (std::size_t member = 0; member < members; ++member) {
      OwnRatings own(3, {16 * member / members, 16 * (member + 1) / members});
      for (const model::Rating& rating : given) own.Add(rating);
      own.Arrange();
      EXPECT_EQ(own.size(), given.size());
      EXPECT_EQ(own.mean(), all.mean());
      EXPECT_LT(own.kept(), given.size());
      for (const Side side : {kUsers, kItems})
        for (std::uint32_t row = 0; row < own.rows(side); ++row) {
          EXPECT_EQ(own.count(side, row), all.count(side, row));
          const std::vector<Met> met = MetBy(own, side, row);
          if (own.Mine(side, row)) {
            ++owners[side][row];
            EXPECT_EQ(met, MetBy(all, side, row));
            EXPECT_EQ(met.size(), own.count(side, row));
            continue;
          }
          for (const Met& one : met) EXPECT_TRUE(own.Mine(Other(side), one.other));
        }
    }
    for (const auto& each : owners)
      for (const int count : each) EXPECT_EQ(count, 1);
  }
}

TEST(OwnRatings, NoneAreNone) {
  OwnRatings none(1, {});
  none.Arrange();
  EXPECT_EQ(none.size(), 0u);
  EXPECT_EQ(none.mean(), 0);
  EXPECT_EQ(none.kept(), 0u);
}

}  // namespace
}  // namespace freshet::strategy::scheduled
