#include "optimize/lbfgs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace freshet::optimize {
namespace {

// ½ (x - c)' A (x - c) with A = B'B + I.
struct Quadratic {
  std::size_t n;
  std::vector<double> a, centre;

  explicit Quadratic(base::Random& random) : n(1 + random.Below(20)), a(n * n), centre(n) {
    std::vector<double> b(n * n);
    for (double& value : b) value = random.Normal();
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        a[i * n + j] = i == j ? 1 : 0;
        for (std::size_t k = 0; k < n; ++k) a[i * n + j] += b[k * n + i] * b[k * n + j];
      }
    for (double& value : centre) value = 3 * random.Normal();
  }
  double operator()(std::span<const float> x, std::span<float> gradient) const {
    double value = 0;
    for (std::size_t i = 0; i < n; ++i) {
      double g = 0;
      for (std::size_t j = 0; j < n; ++j) g += a[i * n + j] * (x[j] - centre[j]);
      gradient[i] = static_cast<float>(g);
      value += 0.5 * g * (x[i] - centre[i]);
    }
    return value;
  }
};

TEST(Lbfgs, FindsTheCentreOfAnyConvexQuadratic) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "quadratic");
    const Quadratic quadratic(random);
    Lbfgs lbfgs(std::vector<float>(quadratic.n), {},
                [&](auto x, auto gradient) -> Result<double> { return quadratic(x, gradient); });
    double last = 1e300;
    for (int i = 0; i < 200; ++i) {
      const auto more = lbfgs.Step();
      ASSERT_TRUE(more.ok());
      ASSERT_LE(lbfgs.value(), last);  // it never goes uphill
      last = lbfgs.value();
      if (!more.value()) break;
    }
    for (std::size_t i = 0; i < quadratic.n; ++i)
      ASSERT_NEAR(lbfgs.point()[i], quadratic.centre[i], 5e-3 * std::max(1.0, std::abs(quadratic.centre[i])));
  }
}

TEST(Lbfgs, FollowsTheValleyOfRosenbrock) {
  int evaluations = 0;
  Lbfgs lbfgs({-1.2f, 1.0f}, {}, [&](std::span<const float> x, std::span<float> g) -> Result<double> {
    ++evaluations;
    const double a = 1 - x[0], b = x[1] - static_cast<double>(x[0]) * x[0];
    g[0] = static_cast<float>(-2 * a - 400 * x[0] * b);
    g[1] = static_cast<float>(200 * b);
    return a * a + 100 * b * b;
  });
  for (int i = 0; i < 200 && lbfgs.Step().value(); ++i) {
  }
  EXPECT_NEAR(lbfgs.point()[0], 1, 1e-2);
  EXPECT_NEAR(lbfgs.point()[1], 1, 2e-2);
  EXPECT_LT(lbfgs.value(), 1e-4);
  EXPECT_LT(evaluations, 150);
}

TEST(Lbfgs, StopsAtOnceWhereThereIsNothingToGain) {
  Lbfgs lbfgs({0, 0}, {}, [](std::span<const float>, std::span<float> g) -> Result<double> {
    g[0] = g[1] = 0;
    return 3.0;
  });
  EXPECT_FALSE(lbfgs.Step().value());
  EXPECT_EQ(lbfgs.value(), 3.0);
}

TEST(Lbfgs, PassesOnTheErrorOfTheObjective) {
  int calls = 0;
  Lbfgs lbfgs({5}, {}, [&](std::span<const float> x, std::span<float> g) -> Result<double> {
    if (++calls == 3) return Error{Code::kStopped, "enough"};
    g[0] = x[0];
    return 0.5 * x[0] * x[0];
  });
  Result<bool> more = true;
  for (int i = 0; i < 10 && more.ok() && more.value(); ++i) more = lbfgs.Step();
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error().code, Code::kStopped);
}

TEST(Lbfgs, IsDeterministic) {
  base::Random random(9, "same");
  const Quadratic quadratic(random);
  std::vector<float> ends[2];
  for (auto& end : ends) {
    Lbfgs lbfgs(std::vector<float>(quadratic.n), {},
                [&](auto x, auto gradient) -> Result<double> { return quadratic(x, gradient); });
    for (int i = 0; i < 5; ++i) (void)lbfgs.Step();
    end.assign(lbfgs.point().begin(), lbfgs.point().end());
  }
  EXPECT_EQ(ends[0], ends[1]);
}

}  // namespace
}  // namespace freshet::optimize
