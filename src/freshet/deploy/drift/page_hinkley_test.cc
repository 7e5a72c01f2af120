#include "deploy/drift/page_hinkley.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace freshet::deploy {
namespace {

// The test as it is written in books: the sum of deviations, against the least it ever was.
TEST(PageHinkley, IsTheDistanceOfTheSumFromItsMinimum) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "page-hinkley");
    PageHinkley detector;
    ErrorMoments errors;
    double sum = 0, least = 0;
    for (int i = 0; i < 1500; ++i) {
      const double error = std::abs(random.Normal()) * (i < 1000 ? 1 : 2);
      const Drift drift = detector.Add(error);
      if (i >= 30) sum += std::min((error - errors.mean) / std::sqrt(errors.variance()), 5.0) - 0.1;
      least = std::min(least, sum);
      errors.Add(error);
      const double above = sum - least;
      if (std::abs(above - 25) < 1e-6 || std::abs(above - 50) < 1e-6) break;  // rounding decides
      ASSERT_EQ(drift, above > 50 ? Drift::kDrift : above > 25 ? Drift::kWarning : Drift::kNone);
      if (drift == Drift::kDrift) break;
    }
  }
}

TEST(PageHinkley, MakesNoAlarmOfAnOutlier) {
  base::Random random(1, "outlier");
  PageHinkley detector;
  for (int i = 0; i < 1000; ++i) detector.Add(random.Uniform());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(detector.Add(1e9), Drift::kNone);
}

TEST(PageHinkley, ToleratesARiseByATwentiethOfADeviation) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "small");
    PageHinkley detector;
    for (int i = 0; i < 5000; ++i) ASSERT_NE(detector.Add(random.Normal() + (i < 2500 ? 0 : 0.05)), Drift::kDrift);
  }
}

}  // namespace
}  // namespace freshet::deploy
