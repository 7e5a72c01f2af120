#include "deploy/ranges.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"
#include "base/result.h"

namespace freshet::deploy {
namespace {

TEST(Ranges, HoldWhatWasAddedInAsFewStretchesAsThatIs) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "ranges");
    Ranges ranges;
    std::set<std::uint64_t> expected;
    for (std::uint64_t i = random.Below(12); i > 0; --i) {
      const std::uint64_t first = random.Below(40), last = first + random.Below(6);
      ranges.Add(first, last);
      for (std::uint64_t n = first; n <= last; ++n) expected.insert(n);
    }
    std::size_t stretches = 0;
    for (std::uint64_t n = 0; n < 50; ++n) {
      EXPECT_EQ(ranges.Holds(n), expected.contains(n)) << n;
      stretches += expected.contains(n) && !(n > 0 && expected.contains(n - 1)) ? 1 : 0;
    }
    EXPECT_EQ(ranges.list().size(), stretches);
  }
}

}  // namespace
}  // namespace freshet::deploy
