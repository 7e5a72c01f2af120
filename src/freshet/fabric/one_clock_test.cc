#include "fabric/one_clock.h"

#include <gtest/gtest.h>

#include "fabric/threads/threads_testing.h"

namespace freshet::fabric {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// The system's, but that many nanoseconds ahead.
class OtherClock final : public base::Clock {
 public:
  explicit OtherClock(Duration ahead) : ahead_(ahead) {}
  Duration Now() const override { return system_.Now() + ahead_; }
  Duration Wall() const override { return system_.Wall() + ahead_; }
  void Sleep(Duration) override {}

 private:
  const base::SystemClock system_;
  const Duration ahead_;
};

TEST(OneClock, FindsHowFarEachClockIsAheadWithinTheErrorItStates) {
  for (const int size : {1, 2, 5}) {
    RunMembers(size, [&](Fabric& fabric) {
      const milliseconds ahead(-700 * fabric.rank());
      const OtherClock clock(ahead);
      Collectives collectives(fabric);
      const auto reading = CompareClocks(collectives, clock);
      ASSERT_TRUE(reading.ok()) << reading.error().text;
      EXPECT_LE(std::abs((reading.value().ahead - ahead).count()), reading.value().error.count());
      EXPECT_TRUE(fabric.rank() > 0 || reading.value().error.count() == 0);
      const auto sum = collectives.Gather({});  // tags are still the same everywhere
      EXPECT_TRUE(sum.ok());
    });
  }
}

TEST(OneClock, BetweenTwoReadingsAClockDriftsEvenly) {
  const ClockReading first{nanoseconds(1000), nanoseconds(100), {}}, second{nanoseconds(3000), nanoseconds(300), {}};
  EXPECT_EQ(OnRankZero(first, second, nanoseconds(1000)).count(), 900);
  EXPECT_EQ(OnRankZero(first, second, nanoseconds(2000)).count(), 1800);
  EXPECT_EQ(OnRankZero(first, second, nanoseconds(3000)).count(), 2700);
  EXPECT_EQ(OnRankZero(first, first, nanoseconds(5000)).count(), 4900);
}

}  // namespace
}  // namespace freshet::fabric
