#include "serve/http/pace.h"

#include <gtest/gtest.h>

namespace freshet::serve {
namespace {

using namespace std::chrono_literals;

TEST(HttpPace, LetsThroughWhatIsSteadyForAsLongAsItTakes) {
  HttpPace pace({1'000, 30s, 10s});
  pace.Begin(5s);
  for (base::Clock::Duration now = 5s; now < 5s + 10min; now += 1s) {
    EXPECT_FALSE(pace.TooSlow(now));
    pace.Move(1'100, now);
  }
}

TEST(HttpPace, EndsAPauseHoweverMuchCameBefore) {
  HttpPace pace({1'000, 30s, 10s});
  pace.Begin(0s);
  pace.Move(1 << 30, 1s);
  EXPECT_FALSE(pace.TooSlow(10s));
  EXPECT_TRUE(pace.TooSlow(11s));
}

TEST(HttpPace, EndsATrickleAfterItsWindowHoweverMuchCameBefore) {
  HttpPace pace({1'000, 30s, 10s});
  pace.Begin(0s);
  pace.Move(1 << 30, 1s);
  base::Clock::Duration now = 1s;
  for (; now < 5min && !pace.TooSlow(now); now += 1s) pace.Move(1, now);
  EXPECT_GE(now, 30s);
  EXPECT_LE(now, 61s);
}

}  // namespace
}  // namespace freshet::serve
