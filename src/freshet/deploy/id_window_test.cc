#include "deploy/id_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "base/random.h"
#include "base/str.h"

namespace freshet::deploy {
namespace {

TEST(IdWindow, KnowsTheLastIdsAsASlowListWould) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "ids");
    const std::size_t most = 1 + random.Below(seed % 2 == 0 ? 20 : 3000);
    const std::uint64_t range = 1 + random.Below(3 * most);
    const bool crowded = random.Below(2) == 0;  // hashes that all begin at a few places of the table
    IdWindow window(most);
    std::deque<std::uint64_t> expected;
    std::size_t added = 0;  // since the last Trim
    for (int step = 0; step < 5000; ++step) {
      const std::uint64_t n = 1 + random.Below(range), hash = crowded ? n << 20 | n % 3 : base::Hash64(n);
      const bool has = std::find(expected.begin(), expected.end(), hash) != expected.end();
      ASSERT_EQ(window.Has(hash), has);
      if (!has) {
        window.Add(hash);
        expected.push_back(hash);
        ++added;
      }
      if (random.Below(10) == 0)
        for (std::uint64_t take = random.Below(added + 1); take > 0; --take, --added) {  // a commit that failed
          window.RemoveNewest();
          expected.pop_back();
        }
      if (random.Below(10) == 0) {
        window.Trim();
        while (expected.size() > most) expected.pop_front();
        added = 0;
      }
      ASSERT_EQ(window.size(), expected.size());
    }
    for (const std::uint64_t hash : expected) ASSERT_TRUE(window.Has(hash));
  }
}

TEST(IdWindow, FindsHashesThatWereMadeToCollideAsFastAsOthers) {
  IdWindow window(10'000);
  for (std::uint64_t n = 1; n <= 2'000; ++n) window.Add(n << 32);
  EXPECT_LT(window.LongestProbe(), 100u);
}

TEST(IdWindow, LosesNothingByWhatIsTakenBack) {
  IdWindow window(3);
  for (const std::uint64_t hash : {1, 2, 3}) window.Add(hash);
  window.Trim();
  for (int round = 0; round < 10; ++round) {
    for (const std::uint64_t hash : {4, 5, 6, 7}) window.Add(hash);
    for (int i = 0; i < 4; ++i) window.RemoveNewest();
  }
  window.Trim();
  for (const std::uint64_t hash : {1, 2, 3}) EXPECT_TRUE(window.Has(hash));
  EXPECT_EQ(window.size(), 3u);
}

TEST(IdWindow, HashesNothingToZero) {
  EXPECT_NE(IdWindow::HashOf(""), 0u);
  EXPECT_NE(IdWindow::HashOf("a"), IdWindow::HashOf("b"));
  EXPECT_EQ(IdWindow::HashOf("", "a"), IdWindow::HashOf("a"));
  EXPECT_NE(IdWindow::HashOf("o", "a"), IdWindow::HashOf("a"));
  EXPECT_NE(IdWindow::HashOf("o", "a"), IdWindow::HashOf("p", "a"));
  EXPECT_NE(IdWindow::HashOf("o", "pa"), IdWindow::HashOf("op", "a"));
}

}  // namespace
}  // namespace freshet::deploy
