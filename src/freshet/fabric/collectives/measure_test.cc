#include "fabric/collectives/measure.h"

#include <gtest/gtest.h>

#include "fabric/threads/threads_testing.h"

namespace freshet::fabric {

TEST(Measure, GivesEveryMemberTheSameRows) {
  const base::SystemClock clock;
  RunMembers(3, [&](Fabric& fabric) {
    Collectives collectives(fabric);
    const auto rows = Measure(collectives, clock, {.algorithms = {}, .sizes = {4, 4096}, .seconds_each = 0.001});
    ASSERT_TRUE(rows.ok()) << rows.error().text;
    ASSERT_EQ(rows.value().size(), 2 * UsableAlgorithms(fabric).size());
    for (const Measurement& row : rows.value()) {
      EXPECT_GE(row.sums, 3U);
      EXPECT_LE(row.best_seconds, row.median_seconds);
      std::vector<float> of_all = {static_cast<float>(row.median_seconds)};
      const float mine = of_all[0];
      ASSERT_TRUE(collectives.AllReduce(of_all, Algorithm::kCentral).ok());
      EXPECT_FLOAT_EQ(of_all[0], 3 * mine);
    }
  });
}

TEST(Measure, HierarchicalMakesSenseWhereSomeShareAHost) {
  const base::SystemClock clock;
  const auto has = [](const Fabric& fabric, Algorithm wanted) {
    for (const Algorithm algorithm : UsableAlgorithms(fabric)) {
      if (algorithm == wanted) return true;
    }
    return false;
  };
  ThreadsGroup one_host(3, clock), two_hosts(3, clock, {.hosts = {"a", "a", "b"}});
  EXPECT_FALSE(has(one_host.member(0), Algorithm::kHierarchical));
  EXPECT_TRUE(has(two_hosts.member(0), Algorithm::kHierarchical));
  EXPECT_TRUE(has(two_hosts.member(0), Algorithm::kNative));
}

}  // namespace freshet::fabric
