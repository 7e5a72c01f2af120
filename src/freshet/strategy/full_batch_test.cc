#include "strategy/full_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "base/random.h"
#include "fabric/threads/threads_testing.h"
#include "optimize/lbfgs.h"

namespace freshet::strategy {
namespace {

// Least squares of `width` weights over rows of numbers, as members of a training have them.
struct Squares {
  std::size_t rows, width;
  std::vector<float> features, labels;

  Squares(std::uint64_t seed, std::size_t count, std::size_t weights) : rows(count), width(weights) {
    base::Random random(seed, "squares");
    for (std::size_t i = 0; i < rows * width; ++i) features.push_back(static_cast<float>(random.Normal()));
    for (std::size_t i = 0; i < rows; ++i) labels.push_back(static_cast<float>(random.Normal()));
  }

  // The part of those rows that the member has; the gradient is added.
  double Of(const FullBatch& member, std::span<const float> at, std::span<float> gradient) const {
    double loss = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      if (!member.Has(r)) continue;
      double error = -labels[r];
      for (std::size_t j = 0; j < width; ++j) error += static_cast<double>(at[j]) * features[r * width + j];
      for (std::size_t j = 0; j < width; ++j) gradient[j] += static_cast<float>(error * features[r * width + j]);
      loss += 0.5 * error * error;
    }
    return loss;
  }
};

struct Found {
  std::vector<float> point;  // all of it
  double value = 0;
  std::size_t remembered = 0, held = 0;  // floats
};

Result<Found> Minimise(const Squares& squares, FullBatch& member, int steps) {
  std::vector<float> vector(squares.width, 0.1f);
  const auto place = [&](std::span<const float> at) {
    std::copy(at.begin(), at.end(), member.Mine(vector).begin());
    return member.Complete(vector);
  };
  const auto start = member.Mine(vector);
  optimize::Lbfgs lbfgs(
      {start.begin(), start.end()}, {},
      [&](auto at, auto gradient) -> Result<double> {
        TRY(place(at));
        std::vector<float> sum(squares.width, 0.0f);
        const double loss = squares.Of(member, vector, sum);
        TRY(member.AddUp(sum));
        const auto mine = member.Mine(sum);
        std::copy(mine.begin(), mine.end(), gradient.begin());
        return TRY(member.Sum({loss}))[0];
      },
      [&](auto parts) { return member.SumOverRanges(parts); });
  for (int i = 0; i < steps; ++i) TRY(lbfgs.Step());
  TRY(place(lbfgs.point()));
  return Found{std::move(vector), lbfgs.value(), lbfgs.remembered(), lbfgs.point().size()};
}

std::vector<Found> MinimiseTogether(const Squares& squares, int members, bool in_ranges, int steps) {
  std::vector<Found> found(static_cast<std::size_t>(members));
  fabric::RunMembers(members, [&](fabric::Fabric& fabric) {
    fabric::Collectives collectives(fabric);
    const base::SystemClock clock;
    FullBatch member({.in_ranges = in_ranges, .whole = true}, {&collectives, clock});
    auto result = Minimise(squares, member, steps);
    ASSERT_TRUE(result.ok()) << result.error().text;
    found[static_cast<std::size_t>(fabric.rank())] = std::move(result).value();
  });
  return found;
}

TEST(FullBatch, MembersWithAllOfTheVectorsOrARangeOfThemFindWhatOneFinds) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    base::Random random(seed, "shapes");
    const Squares squares(seed, 1 + random.Below(40), 1 + random.Below(12));  // often fewer than members
    const base::SystemClock clock;
    FullBatch alone({}, {.clock = clock});
    const Found one = Minimise(squares, alone, 6).value();
    for (const int members : {1, 2, 3, 5})
      for (const bool in_ranges : {false, true}) {
        SCOPED_TRACE(Str("seed ", seed, ", ", members, in_ranges ? " with ranges" : " with all"));
        const auto found = MinimiseTogether(squares, members, in_ranges, 6);
        for (const Found& each : found) {
          ASSERT_EQ(each.point, found[0].point);
          ASSERT_EQ(each.value, found[0].value);
        }
        ASSERT_NEAR(found[0].value, one.value, 1e-5 * one.value + 1e-6);
      }
  }
}

TEST(FullBatch, WhoHasARangeRemembersStepsAndGradientsOfThatRangeAlone) {
  constexpr std::size_t kWidth = 103;
  const Squares squares(7, 400, kWidth);
  for (const int members : {1, 2, 3, 5}) {
    SCOPED_TRACE(members);
    std::size_t all = 0;
    for (const Found& each : MinimiseTogether(squares, members, true, 14)) {
      EXPECT_LE(each.held, kWidth / static_cast<std::size_t>(members) + 1);
      EXPECT_EQ(each.remembered, 2 * 10 * each.held);  // ten pairs
      all += each.remembered;
    }
    EXPECT_EQ(all, 2 * 10 * kWidth);
    for (const Found& each : MinimiseTogether(squares, members, false, 14)) EXPECT_EQ(each.remembered, 2 * 10 * kWidth);
  }
}

TEST(FullBatch, SumsAndLargestNumbersAreOfAllMembersAndTheTimesSayWhatTheyTook) {
  fabric::RunMembers(3, [](fabric::Fabric& fabric) {
    fabric::Collectives collectives(fabric);
    const base::SystemClock clock;
    FullBatch member({}, {&collectives, clock});
    const double mine = fabric.rank() + 1;
    EXPECT_EQ(member.Sum({mine, -mine}).value(), (std::vector<double>{6, -6}));
    EXPECT_EQ(member.Largest({mine, -mine}).value(), (std::vector<double>{3, -1}));
    EXPECT_GT(member.times().bytes_sent + member.times().bytes_shared, 0u);
    EXPECT_EQ(member.times().exchange, 0);
    std::vector<float> vector(10, static_cast<float>(mine));
    ASSERT_TRUE(member.AddUp(vector).ok());
    EXPECT_EQ(vector, std::vector<float>(10, 6.0f));
    EXPECT_GT(member.times().exchange, 0);
  });
}

TEST(FullBatch, EachRowIsOneMembersAndSharesDifferByOneAtMost) {
  for (const int members : {1, 2, 3, 5}) {
    std::vector<int> owners(23, 0), shares(static_cast<std::size_t>(members), 0);
    std::mutex mutex;
    fabric::RunMembers(members, [&](fabric::Fabric& fabric) {
      fabric::Collectives collectives(fabric);
      const base::SystemClock clock;
      const FullBatch member({}, {&collectives, clock});
      const std::lock_guard lock(mutex);
      for (std::size_t row = 0; row < owners.size(); ++row)
        if (member.Has(row)) ++owners[row], ++shares[static_cast<std::size_t>(fabric.rank())];
    });
    EXPECT_EQ(owners, std::vector<int>(23, 1));
    const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
    EXPECT_LE(*most - *least, 1);
  }
}

}  // namespace
}  // namespace freshet::strategy
