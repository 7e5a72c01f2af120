#include "deploy/drift/ddm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace freshet::deploy {
namespace {

TEST(Ddm, FollowsThePaperForErrorsOfZeroAndOne) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "ddm");
    Ddm ddm;
    double n = 0, errors = 0, lowest_p = 1, lowest_s = 1;
    for (int i = 0; i < 2000; ++i) {
      const double error = random.Uniform() < (i < 1500 ? 0.2 : 0.3) ? 1 : 0;
      const Drift drift = ddm.Add(error);
      ++n;
      errors += error;
      const double p = errors / n, s = std::sqrt(p * (1 - p) / n);
      if (n < 100 || p < 3 * s) {
        ASSERT_EQ(drift, Drift::kNone);
        continue;
      }
      if (p + s < lowest_p + lowest_s) lowest_p = p, lowest_s = s;
      const double level = (p + s - lowest_p) / lowest_s;
      if (std::abs(level - 2) < 1e-6 || std::abs(level - 3) < 1e-6) break;  // rounding decides
      ASSERT_EQ(drift, level > 3 ? Drift::kDrift : level > 2 ? Drift::kWarning : Drift::kNone);
      if (drift == Drift::kDrift) n = errors = 0, lowest_p = lowest_s = 1;
    }
  }
}

TEST(Ddm, WarnsBeforeItAlarms) {
  base::Random random(1, "ddm");
  Ddm ddm;
  for (int i = 0; i < 1000; ++i) ddm.Add(random.Uniform() < 0.1);
  Drift last = Drift::kNone, drift = Drift::kNone;
  for (int i = 0; i < 500 && drift != Drift::kDrift; ++i) {
    last = drift;
    drift = ddm.Add(random.Uniform() < 0.4);
  }
  EXPECT_EQ(drift, Drift::kDrift);
  EXPECT_EQ(last, Drift::kWarning);
}

TEST(Ddm, MakesNoAlarmOfTheFirstErrorOfAGoodModel) {
  Ddm ddm;
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(ddm.Add(0), Drift::kNone);
  for (int i = 0; i < 8; ++i) ASSERT_EQ(ddm.Add(1), Drift::kNone);
  int more = 1;
  while (more < 20 && ddm.Add(1) != Drift::kDrift) ++more;
  EXPECT_LT(more, 20);
}

}  // namespace
}  // namespace freshet::deploy
