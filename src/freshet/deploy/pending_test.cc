#include "deploy/pending.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/str.h"

namespace freshet::deploy {
namespace {

TEST(Pending, KeepsWhatEachOwnerHasUnderAnId) {
  Pending pending(100, 1 << 20);
  pending.Add("shop", "x", 1, "shop's");
  pending.Add("web", "x", 2, "web's");
  pending.Add("web", "x", 3, "web's next");
  pending.Add("", "y", 3, "nobody's");
  EXPECT_EQ(*pending.Find("shop", "x", 3), "shop's");
  EXPECT_EQ(*pending.Find("web", "x", 3), "web's next");
  EXPECT_EQ(pending.Find("", "x", 3), nullptr);
  EXPECT_EQ(pending.OwnersOf("x", 3), (std::vector<std::string>{"shop", "web"}));
  EXPECT_EQ(pending.OwnersOf("y", 3), (std::vector<std::string>{""}));
  EXPECT_TRUE(pending.OwnersOf("", 3).empty());
  EXPECT_EQ(pending.OwnersOf("x", 102), (std::vector<std::string>{"web"}));
  EXPECT_EQ(pending.Find("shop", "x", 102), nullptr);
}

TEST(Pending, KeepsAPredictionForItsTime) {
  Pending pending(10, 1 << 20);
  pending.Add("", "1", 100, "a");
  ASSERT_NE(pending.Find("", "1", 110), nullptr);
  EXPECT_EQ(pending.Find("", "1", 111), nullptr);
  pending.Add("", "1", 108, "b");
  pending.Add("", "2", 112, "c");  // the first would have expired, and takes nothing with it
  EXPECT_EQ(*pending.Find("", "1", 118), "b");
  pending.Add("", "3", 119, "d");
  EXPECT_EQ(pending.size(), 2u);  // the second has
}

TEST(Pending, ForgetsTheOldestWhenThereAreTooMany) {
  Pending pending(1000, 1'000);
  for (int id = 0; id < 10; ++id) pending.Add("", Str(id), id, "x");
  ASSERT_EQ(pending.size(), 3u);
  EXPECT_EQ(pending.Find("", "6", 10), nullptr);
  for (int id = 7; id < 10; ++id) EXPECT_NE(pending.Find("", Str(id), 10), nullptr);
}

TEST(Pending, RemembersThatALabelHasCome) {
  Pending pending(100, 1 << 20);
  pending.Add("shop", "x", 1, "row");
  pending.Answer("shop", "x");
  pending.Add("shop", "x", 2, "again");
  EXPECT_EQ(pending.Find("shop", "x", 2), nullptr);
  EXPECT_EQ(pending.OwnersOf("x", 2), (std::vector<std::string>{"shop"}));
  EXPECT_TRUE(pending.OwnersOf("x", 103).empty());
}

TEST(Pending, AFloodPushesOutItsOwnRowsOnly) {
  Pending pending(1000, 100'000);
  for (int n = 0; n < 50; ++n) pending.Add("shop", Str(n), n, "row");
  for (int n = 0; n < 5'000; ++n) pending.Add("flood", Str(n), 60, std::string(50, 'x'));
  for (int n = 0; n < 50; ++n) EXPECT_NE(pending.Find("shop", Str(n), 60), nullptr) << n;
  EXPECT_EQ(pending.Find("flood", "0", 60), nullptr);
  EXPECT_NE(pending.Find("flood", "4999", 60), nullptr);
  EXPECT_LE(pending.bytes(), 100'000u);
  // What has expired goes before anything else.
  for (int n = 0; n < 5'000; ++n) pending.Add("flood", Str(n), 1'020, std::string(50, 'x'));
  EXPECT_EQ(pending.OwnersOf("7", 7).size(), 0u);
  EXPECT_NE(pending.Find("shop", "49", 1'020), nullptr);
}

// Against a plain model: whatever is done, the counts are those of what is there and the budget holds.
TEST(Pending, StaysWithinItsBudgetWhateverIsDone) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "pending");
    Pending pending(20, 4'000);
    std::int64_t now = 0;
    for (int step = 0; step < 2'000; ++step) {
      now += static_cast<std::int64_t>(random.Below(3));
      const std::string owner = Str("o", random.Below(4)), id = Str(random.Below(30));
      if (random.Below(4) == 0) {
        pending.Answer(owner, id);
        EXPECT_EQ(pending.Find(owner, id, now), nullptr);
      } else {
        pending.Add(owner, id, now, std::string(1 + random.Below(300), 'x'));
      }
      ASSERT_LE(pending.bytes(), 4'000u);
      ASSERT_EQ(pending.size() == 0, pending.bytes() == 0);
    }
    pending.Add("last", "row", now + 1'000, std::string(4'000, 'x'));  // larger than the budget
    EXPECT_EQ(pending.size(), 0u);
    EXPECT_EQ(pending.bytes(), 0u);
  }
}

}  // namespace
}  // namespace freshet::deploy
