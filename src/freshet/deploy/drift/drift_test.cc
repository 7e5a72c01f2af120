#include "deploy/drift/drift.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/random.h"

namespace freshet::deploy {
namespace {

// An error before and after a change for the worse.
struct Law {
  std::string_view name;
  double (*draw)(base::Random& random, bool worse);
};
constexpr Law kLaws[] = {
    {"0/1, 10 % to 40 %", [](base::Random& r, bool worse) { return r.Uniform() < (worse ? 0.4 : 0.1) ? 1.0 : 0.0; }},
    {"0/1, 1 % to 30 %", [](base::Random& r, bool worse) { return r.Uniform() < (worse ? 0.3 : 0.01) ? 1.0 : 0.0; }},
    {"squared, four times as large",
     [](base::Random& r, bool worse) { return 1000 * std::pow(r.Normal() * (worse ? 2 : 1), 2); }},
    {"exponential, three times as large",
     [](base::Random& r, bool worse) { return -1e-3 * std::log1p(-r.Uniform()) * (worse ? 3 : 1); }},
    {"normal, one deviation up", [](base::Random& r, bool worse) { return r.Normal() + (worse ? 1 : 0); }},
};

std::unique_ptr<DriftDetector> New(std::string_view kind) { return DriftDetector::Make(kind).value(); }

// Errors whose law changes now and then, in both directions.
std::vector<double> ChangingErrors(std::uint64_t seed, int rows) {
  base::Random random(seed, "changing");
  const Law& law = kLaws[random.Below(std::size(kLaws))];
  std::vector<double> errors;
  for (int i = 0; i < rows; ++i) errors.push_back(law.draw(random, i / 700 % 2 == 1));
  return errors;
}

TEST(DriftDetector, KnowsItsKindsAndNamesThemWhenAskedForAnother) {
  for (const std::string& kind : DriftDetector::Kinds()) EXPECT_EQ(New(kind)->name(), kind);
  const auto wrong = DriftDetector::Make("adwim");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code, Code::kInvalid);
  EXPECT_EQ(wrong.error().text, "drift detector 'adwim': expected one of adwin, ddm, page-hinkley, none");
}

TEST(DriftDetector, RarelyAlarmsWhileNothingChanges) {
  const std::pair<std::string_view, int> kRowsPerAlarm[] = {
      {"adwin", 100'000}, {"page-hinkley", 100'000}, {"ddm", 10'000}};
  constexpr int kSeeds = 20, kRows = 10'000;
  for (const auto& [kind, rows_per_alarm] : kRowsPerAlarm)
    for (const Law& law : kLaws) {
      SCOPED_TRACE(Str(kind, ", ", law.name));
      int alarms = 0;
      for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        base::Random random(seed, "steady");
        const auto detector = New(kind);
        for (int i = 0; i < kRows; ++i) alarms += detector->Add(law.draw(random, false)) == Drift::kDrift;
      }
      EXPECT_LE(alarms, kSeeds * kRows / rows_per_alarm);
    }
}

TEST(DriftDetector, TellsAboutHowManyRowsCameAfterTheJump) {
  // Of 2,000 rows before it, so many may be taken for rows after it: adwin forgets whole buckets, and ddm only knows
  // where the mean was lowest.
  const std::pair<std::string_view, int> kTooMany[] = {{"adwin", 1000}, {"page-hinkley", 200}, {"ddm", 2000}};
  for (const auto& [kind, too_many] : kTooMany) {
    SCOPED_TRACE(kind);
    int near = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      base::Random random(seed, "since");
      const auto detector = New(kind);
      for (int i = 0; i < 2000; ++i) detector->Add(kLaws[0].draw(random, false));
      int rows = 1;
      while (detector->Add(kLaws[0].draw(random, true)) != Drift::kDrift) ++rows;
      ASSERT_GT(detector->since(), 0u);
      near += detector->since() <= static_cast<std::uint64_t>(rows + too_many);
    }
    EXPECT_GE(near, 36);
  }
}

TEST(DriftDetector, FindsAJumpAfterTwoThousandRowsWithinAFewHundred) {
  struct Bound {
    std::string_view kind;
    int rows, missed;  // of 40 jumps; a false alarm just before the jump has made ddm forget what was usual
  };
  for (const auto& [kind, most_rows, most_missed] : {Bound{"adwin", 256, 0}, {"page-hinkley", 128, 0}, {"ddm", 512, 1}})
    for (const Law& law : kLaws) {
      SCOPED_TRACE(Str(kind, ", ", law.name));
      int missed = 0;
      for (std::uint64_t seed = 0; seed < 40; ++seed) {
        base::Random random(seed, "jump");
        const auto detector = New(kind);
        for (int i = 0; i < 2000; ++i) detector->Add(law.draw(random, false));
        int rows = 1;
        while (rows <= most_rows && detector->Add(law.draw(random, true)) != Drift::kDrift) ++rows;
        missed += rows > most_rows;
      }
      EXPECT_LE(missed, most_missed);
    }
}

TEST(DriftDetector, SaysNothingWhenErrorsFall) {
  for (const std::string& kind : DriftDetector::Kinds())
    for (const Law& law : kLaws)
      for (std::uint64_t seed = 0; seed < 10; ++seed) {
        SCOPED_TRACE(Str(kind, ", ", law.name, ", seed ", seed));
        base::Random random(seed, "fall");
        const auto detector = New(kind);
        for (int i = 0; i < 1000; ++i) detector->Add(law.draw(random, true));
        for (int i = 0; i < 1000; ++i) ASSERT_NE(detector->Add(law.draw(random, false)), Drift::kDrift);
      }
}

TEST(DriftDetector, ReportsOneChangeOnce) {
  for (const std::string_view kind : {"adwin", "page-hinkley"})
    for (const Law& law : kLaws)
      for (std::uint64_t seed = 0; seed < 10; ++seed) {
        SCOPED_TRACE(Str(kind, ", ", law.name, ", seed ", seed));
        base::Random random(seed, "once");
        const auto detector = New(kind);
        int alarms = 0;
        for (int i = 0; i < 4000; ++i) alarms += detector->Add(law.draw(random, i >= 2000)) == Drift::kDrift;
        EXPECT_EQ(alarms, 1);
      }
}

TEST(DriftDetector, GoesOnFromASavedStateAsIfItHadNeverStopped) {
  for (const std::string& kind : DriftDetector::Kinds())
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      SCOPED_TRACE(Str(kind, ", seed ", seed));
      base::Random random(seed, "stops");
      const auto whole = New(kind);
      auto parts = New(kind);
      for (const double error : ChangingErrors(seed, 3000)) {
        ASSERT_EQ(parts->Add(error), whole->Add(error));
        if (random.Below(100) > 0) continue;
        const std::vector<double> state = parts->Save();
        for (const double number : state) ASSERT_TRUE(std::isfinite(number));
        parts = New(kind);
        ASSERT_TRUE(parts->Load(state));
      }
      const std::vector<double> a = whole->Save(), b = parts->Save();
      ASSERT_EQ(a.size(), b.size());
      if (!a.empty()) {
        EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]), 0);
      }
    }
}

TEST(DriftDetector, DoesNotDependOnTheUnitOfTheErrors) {
  for (const std::string& kind : DriftDetector::Kinds())
    for (const double unit : {0x1p-30, 0x1p20})  // powers of two, so that nothing is rounded differently
      for (std::uint64_t seed = 0; seed < 10; ++seed) {
        SCOPED_TRACE(Str(kind, ", unit ", unit, ", seed ", seed));
        const auto detector = New(kind), other = New(kind);
        for (const double error : ChangingErrors(seed, 3000)) ASSERT_EQ(other->Add(error * unit), detector->Add(error));
      }
}

TEST(DriftDetector, IgnoresErrorsThatAreNotFinite) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double kNot[] = {std::nan(""), kInfinity, -kInfinity};
  for (const std::string& kind : DriftDetector::Kinds()) {
    SCOPED_TRACE(kind);
    base::Random random(1, "not finite");
    const auto clean = New(kind), dirty = New(kind);
    for (const double error : ChangingErrors(1, 3000)) {
      if (random.Below(3) == 0) {
        EXPECT_EQ(dirty->Add(kNot[random.Below(3)]), Drift::kNone);
      }
      ASSERT_EQ(dirty->Add(error), clean->Add(error));
    }
  }
}

TEST(DriftDetector, StaysFiniteWhenErrorsAreHuge) {
  for (const std::string& kind : DriftDetector::Kinds()) {
    SCOPED_TRACE(kind);
    base::Random random(2, "huge");
    const auto detector = New(kind);
    for (int i = 0; i < 5000; ++i) {
      detector->Add(random.Uniform() < 0.5 ? std::numeric_limits<double>::max() : random.Normal());
      for (const double number : detector->Save()) ASSERT_TRUE(std::isfinite(number));
    }
  }
}

TEST(DriftDetector, RefusesAStateThatIsNotItsOwnAndStaysAsItWas) {
  for (const std::string& kind : DriftDetector::Kinds()) {
    SCOPED_TRACE(kind);
    const auto detector = New(kind);
    for (const double error : ChangingErrors(3, 500)) detector->Add(error);
    const std::vector<double> state = detector->Save();
    std::vector<std::vector<double>> wrong = {{1, 2, 3}};
    for (std::size_t i = 0; i < state.size(); ++i) {
      wrong.push_back(state);
      wrong.back()[i] = std::nan("");
    }
    if (!state.empty()) {
      wrong.push_back(state);
      wrong.back().pop_back();
      wrong.push_back(state);
      wrong.back()[kind == "adwin" ? 1 : 0] = -1;  // a count
    }
    for (const std::vector<double>& numbers : wrong) EXPECT_FALSE(detector->Load(numbers));
    EXPECT_EQ(detector->Save(), state);
  }
}

TEST(ErrorMoments, MergedInAnyWayAreThoseOfAllErrors) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "moments");
    std::vector<double> errors(1 + random.Below(50));
    ErrorMoments one_by_one, left, right;
    const std::uint64_t cut = random.Below(errors.size() + 1);
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < errors.size(); ++i) {
      errors[i] = 1e6 + random.Normal();
      one_by_one.Add(errors[i]);
      (i < cut ? left : right).Add(errors[i]);
      sum += errors[i];
    }
    const auto count = static_cast<double>(errors.size());
    for (const double error : errors) squares += std::pow(error - sum / count, 2);
    left.Merge(right);
    for (const ErrorMoments& moments : {one_by_one, left}) {
      EXPECT_EQ(moments.count, count);
      EXPECT_NEAR(moments.mean, sum / count, 1e-9);
      EXPECT_NEAR(moments.squares, squares, 1e-6);
    }
  }
}

}  // namespace
}  // namespace freshet::deploy
