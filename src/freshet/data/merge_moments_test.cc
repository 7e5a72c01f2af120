#include "data/merge_moments.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "base/str.h"

namespace freshet::data {
namespace {

TEST(MergedMoments, OfPartsAreThoseOfTheWhole) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "parts");
    Moments whole(3), merged(3);
    for (std::uint64_t part = 0, parts = 1 + random.Below(4); part < parts; ++part) {
      Moments own(3);
      for (std::uint64_t r = 0, rows = random.Below(20); r < rows; ++r) {
        float row[] = {static_cast<float>(random.Normal()) + 100, static_cast<float>(random.Normal()), 7};
        if (random.Below(4) == 0) row[1] = std::nanf("");
        whole.Observe(row);
        own.Observe(row);
      }
      merged = Merged(merged, own);
    }
    const auto a = merged.Save(), b = whole.Save();
    for (std::size_t i = 0; i <= 9; ++i) EXPECT_NEAR(a[i], b[i], 1e-9 * (1 + std::abs(b[i]))) << i;
    if (whole.rows() > 0 && whole.rows() < 100) {  // its factors do not lag yet
      float x[] = {101, 0.5f, 7}, y[] = {101, 0.5f, 7};
      merged.Apply(x);
      whole.Apply(y);
      for (std::size_t j = 0; j < 3; ++j) EXPECT_NEAR(x[j], y[j], 1e-4);
    }
  }
}

}  // namespace
}  // namespace freshet::data
