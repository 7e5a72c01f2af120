#include "strategy/scheduled/dependencies.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "base/str.h"

namespace freshet::strategy::scheduled {
namespace {

// Columns of so many rows, of which some have each; neighbours share a part of themselves.
struct Columns {
  std::vector<std::vector<std::uint32_t>> rows;
  std::vector<std::vector<float>> values;
  std::vector<double> weights;

  Columns(std::uint64_t seed, std::size_t count, std::size_t of_rows, double share) {
    base::Random random(seed, "columns");
    for (std::size_t r = 0; r < of_rows; ++r) weights.push_back((1 + random.Uniform()) / static_cast<double>(of_rows));
    std::vector<double> before(of_rows, 0);
    for (std::size_t c = 0; c < count; ++c) {
      rows.emplace_back();
      values.emplace_back();
      for (std::uint32_t r = 0; r < of_rows; ++r) {
        before[r] = share * before[r] + std::sqrt(1 - share * share) * random.Normal();
        if (seed % 2 == 0 && random.Below(3) > 0) continue;  // sparse ones
        rows[c].push_back(r);
        values[c].push_back(static_cast<float>(before[r]));
      }
    }
  }
  Column at(std::size_t c) const { return {rows[c], values[c]}; }
  double Correlation(std::size_t a, std::size_t b) const {
    return std::abs(Dense(a, b)) / std::sqrt(Dense(a, a) * Dense(b, b));
  }
  double Dense(std::size_t a, std::size_t b) const {
    std::vector<double> x(weights.size(), 0);
    for (std::size_t i = 0; i < rows[a].size(); ++i) x[rows[a][i]] = values[a][i];
    double sum = 0;
    for (std::size_t i = 0; i < rows[b].size(); ++i) sum += weights[rows[b][i]] * x[rows[b][i]] * values[b][i];
    return sum;
  }
  std::vector<Dependencies::Candidate> Candidates() const {
    std::vector<Dependencies::Candidate> candidates;
    for (std::size_t c = 0; c < rows.size(); ++c)
      candidates.push_back({static_cast<std::uint32_t>(c), at(c), Product(at(c), at(c), weights)});
    return candidates;
  }
};

TEST(Dependencies, ProductsAreThoseOfTheWholeColumnsInEitherOrder) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const Columns columns(seed, 4, 50, 0.5);
    for (std::size_t a = 0; a < 4; ++a)
      for (std::size_t b = 0; b < 4; ++b) {
        EXPECT_NEAR(Product(columns.at(a), columns.at(b), columns.weights), columns.Dense(a, b), 1e-12);
        EXPECT_EQ(Product(columns.at(a), columns.at(b), columns.weights),
                  Product(columns.at(b), columns.at(a), columns.weights));
      }
  }
}

TEST(Dependencies, NoTwoOfARoundAreCorrelatedByMoreThanRhoNorAnyByOneWithAllOthers) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const double rho = 0.05 * static_cast<double>(seed % 20);
    SCOPED_TRACE(Str("seed ", seed, ", rho ", rho));
    const Columns columns(seed, 24, 60, 0.9);
    Dependencies dependencies(rho, columns.weights);
    const auto together = dependencies.Together(columns.Candidates());
    EXPECT_TRUE(together[0]);
    EXPECT_EQ(together, dependencies.Together(columns.Candidates()));  // also when all are known
    for (std::size_t a = 0; a < together.size(); ++a) {
      double sum = 0;
      bool depends = false;  // on one that came before
      for (std::size_t b = 0; b < together.size(); ++b) {
        if (a == b || !together[b]) continue;
        const double correlation = columns.Correlation(a, b);
        sum += correlation;
        depends = depends || (b < a && correlation > rho + 1e-9);
        if (together[a]) {
          EXPECT_LE(correlation, rho + 1e-9);
        }
      }
      if (together[a]) {
        EXPECT_LT(sum, 1 + 1e-9);
      } else if (rho < 0.03) {
        EXPECT_TRUE(depends);  // there was a reason
      }
    }
  }
}

TEST(Dependencies, WithoutAnyAllMayGoTogether) {
  std::vector<std::uint32_t> row = {0, 1, 2, 3};
  const std::vector<float> one = {1};
  const std::vector<double> weights(4, 0.25);
  std::vector<Dependencies::Candidate> candidates;
  for (std::uint32_t c = 0; c < 4; ++c) candidates.push_back({c, {std::span(row).subspan(c, 1), one}, 0.25});
  EXPECT_EQ(Dependencies(0, weights).Together(candidates), std::vector<bool>(4, true));
  candidates.push_back({4, {std::span(row).subspan(1, 1), one}, 0.25});
  EXPECT_FALSE(Dependencies(0.99, weights).Together(candidates)[4]);
  EXPECT_TRUE(Dependencies(0.5, weights).Together({}).empty());
}

}  // namespace
}  // namespace freshet::strategy::scheduled
