#include "data/moments.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "base/str.h"

namespace freshet::data {
namespace {

using Row = std::vector<float>;
const float kMissing = std::nanf("");

// Columns of different place and scale; values are missing with the chance given.
std::vector<Row> RandomRows(base::Random& random, std::size_t rows, std::size_t columns, double missing) {
  std::vector<Row> out(rows, Row(columns));
  std::vector<double> place(columns), scale(columns);
  for (double& x : place) x = random.Normal() * 100;
  for (double& x : scale) x = std::exp(random.Normal() * 3);
  for (Row& row : out)
    for (std::size_t j = 0; j < columns; ++j)
      row[j] = random.Uniform() < missing ? kMissing : static_cast<float>(place[j] + scale[j] * random.Normal());
  return out;
}

// The plain way: two passes over a column.
struct Reference {
  double mean = 0, variance = 0, count = 0;
  Reference(const std::vector<Row>& rows, std::size_t end, std::size_t column) {
    for (std::size_t r = 0; r < end; ++r)
      if (!std::isnan(rows[r][column])) count += 1, mean += rows[r][column];
    mean /= std::max(count, 1.0);
    for (std::size_t r = 0; r < end; ++r)
      if (!std::isnan(rows[r][column])) variance += (rows[r][column] - mean) * (rows[r][column] - mean);
    variance /= std::max(count, 1.0);
  }
};

TEST(Moments, AreThoseOfTwoPassesThoughTheyNeedOne) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "moments");
    const std::size_t columns = 1 + random.Below(20), count = 1 + random.Below(300);
    const auto rows = RandomRows(random, count, columns, seed % 3 == 0 ? 0.2 : 0);
    Moments moments(columns);
    for (const Row& row : rows) moments.Observe(row.data());
    EXPECT_EQ(moments.rows(), static_cast<double>(count));
    const std::vector<double> saved = moments.Save();  // rows, then count, mean and square of each column
    for (std::size_t j = 0; j < columns; ++j) {
      const Reference reference(rows, count, j);
      ASSERT_EQ(saved[1 + j], reference.count);
      ASSERT_NEAR(saved[1 + columns + j], reference.mean, 1e-9 * (1 + std::abs(reference.mean)));
      ASSERT_NEAR(saved[1 + 2 * columns + j], reference.variance * reference.count,
                  1e-7 * (1 + reference.variance * reference.count));
    }
  }
}

TEST(Moments, StandardiseByWhatWasSeenWithALagOfOnePercent) {
  base::Random random(5, "moments");
  const auto rows = RandomRows(random, 2'000, 3, 0.1);
  Moments moments(3);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    moments.Observe(rows[r].data());
    if (r < 100 || r % 100 != 0) continue;
    Row row = rows[r];
    moments.Apply(row.data());
    for (std::size_t j = 0; j < 3; ++j) {
      if (std::isnan(rows[r][j])) {
        EXPECT_EQ(row[j], 0);
        continue;
      }
      const Reference reference(rows, r + 1, j);
      EXPECT_NEAR(row[j], (rows[r][j] - reference.mean) / std::sqrt(reference.variance), 0.1);
    }
  }
}

TEST(Moments, MakeWhatIsMissingOrConstantZero) {
  Moments moments(3);
  for (int i = 0; i < 50; ++i) {
    const float row[] = {7, kMissing, static_cast<float>(i % 2)};
    moments.Observe(row);
  }
  float row[] = {7, 3, kMissing};
  moments.Apply(row);
  EXPECT_EQ(row[0], 0);
  EXPECT_EQ(row[1], 0);
  EXPECT_EQ(row[2], 0);
}

TEST(Moments, HoldStrayValuesWithinTenDeviations) {
  Moments moments(1);
  for (int i = 0; i < 100; ++i) {
    const float value = i % 2 ? 1 : -1;
    moments.Observe(&value);
  }
  for (const float far : {1e6f, 3e38f}) {
    float high = far, low = -far;
    moments.Apply(&high);
    moments.Apply(&low);
    EXPECT_EQ(high, 10);
    EXPECT_EQ(low, -10);
  }
}

TEST(Moments, StayFiniteForTheSmallestAndLargestFloats) {
  for (const float size : {1e-45f, 1e-40f, 1e-30f, 1e30f, 3e38f}) {
    Moments moments(1);
    for (int i = 0; i < 100; ++i) {
      const float value = i % 2 ? size : -size;
      moments.Observe(&value);
    }
    for (const float value : {size, -size, 0.0f}) {
      float applied = value;
      moments.Apply(&applied);
      EXPECT_TRUE(std::isfinite(applied)) << size;
      EXPECT_LE(std::abs(applied), 10) << size;
      if (value == 0) {
        EXPECT_NEAR(applied, 0, 1e-6) << size;
      }
    }
  }
}

TEST(Moments, GoOnAfterSavingAndLoadingAsIfNothingHadHappened) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "save");
    const std::size_t columns = random.Below(6);
    const auto rows = RandomRows(random, 400, columns, seed % 2 ? 0.05 : 0);
    const std::size_t stop = random.Below(400);
    Moments straight(columns), stopped(columns);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (r == stop) {
        const Moments loaded = Moments::Load(stopped.Save());
        ASSERT_TRUE(loaded == stopped);
        stopped = loaded;
      }
      straight.Observe(rows[r].data());
      stopped.Observe(rows[r].data());
    }
    ASSERT_TRUE(stopped == straight);
    ASSERT_EQ(stopped.Save(), straight.Save());
  }
}

}  // namespace
}  // namespace freshet::data
