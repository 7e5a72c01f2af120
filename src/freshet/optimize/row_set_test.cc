#include "optimize/row_set.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "base/str.h"

namespace freshet::optimize {
namespace {

TEST(RowSet, HoldsEachRowOnceInTheOrderTheyCame) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "set");
    RowSet set;
    for (int round = 0; round < 5; ++round) {
      std::vector<std::uint32_t> expected;
      const std::uint64_t range = 1 + random.Below(round % 2 == 0 ? 10 : 100'000);
      for (std::uint64_t count = random.Below(200); count > 0; --count) {
        const auto row = static_cast<std::uint32_t>(random.Below(range));
        set.Add(row);
        if (std::find(expected.begin(), expected.end(), row) == expected.end()) expected.push_back(row);
      }
      ASSERT_EQ(std::vector(set.rows().begin(), set.rows().end()), expected);
      set.Clear();
      ASSERT_TRUE(set.rows().empty());
    }
  }
}

}  // namespace
}  // namespace freshet::optimize
