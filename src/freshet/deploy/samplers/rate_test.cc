#include "deploy/samplers/rate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace freshet::deploy {
namespace {

TEST(SamplingRate, StaysAsItIsUnlessAdaptive) {
  SamplingRate rate({.rate = 0.3});
  rate.OnDrift();
  EXPECT_EQ(rate.value(), 0.3);
  rate.OnIteration();
  EXPECT_EQ(rate.value(), 0.3);
}

TEST(SamplingRate, FallsToAQuarterOnDriftAndComesBackInTenIterations) {
  SamplingRate rate({.rate = 0.2, .adaptive = true});
  rate.OnDrift();
  EXPECT_DOUBLE_EQ(rate.value(), 0.05);
  rate.OnIteration();  // the one that answers the drift
  EXPECT_DOUBLE_EQ(rate.value(), 0.05);
  for (int i = 0; i < 9; ++i) {
    const double before = rate.value();
    rate.OnIteration();
    EXPECT_NEAR(rate.value() / before, std::pow(4, 0.1), 1e-12);
  }
  EXPECT_LT(rate.value(), 0.2);
  rate.OnIteration();
  rate.OnIteration();
  EXPECT_EQ(rate.value(), 0.2);
}

TEST(SamplingRate, NeverFallsBelowTheLeastAndAlwaysComesBack) {
  SamplingRate floored({.rate = 0.2, .adaptive = true, .least = 0.04});
  SamplingRate deep({.rate = 0.2, .adaptive = true});
  for (int i = 0; i < 2000; ++i) floored.OnDrift(), deep.OnDrift();
  EXPECT_EQ(floored.value(), 0.04);
  EXPECT_GT(deep.value(), 0);
  for (int i = 0; i < 52; ++i) deep.OnIteration();
  EXPECT_EQ(deep.value(), 0.2);
}

TEST(SamplingRate, GoesOnFromASavedState) {
  const SamplingRateOptions options{.rate = 0.2, .adaptive = true};
  SamplingRate rate(options), back(options);
  for (int i = 0; i < 40; ++i) {
    if (i % 7 == 0) rate.OnDrift();
    back = SamplingRate(options);
    ASSERT_TRUE(back.Load(rate.Save()));
    rate.OnIteration();
    back.OnIteration();
    ASSERT_EQ(back.value(), rate.value());
  }
}

TEST(SamplingRate, KeepsToTheOptionsOfNowWhenItLoads) {
  SamplingRate before({.rate = 0.8, .adaptive = true}), fixed({.rate = 0.1}), lower({.rate = 0.1, .adaptive = true});
  ASSERT_TRUE(fixed.Load(before.Save()));
  ASSERT_TRUE(lower.Load(before.Save()));
  EXPECT_EQ(fixed.value(), 0.1);
  EXPECT_EQ(lower.value(), 0.1);
  for (const std::vector<double>& wrong : {std::vector<double>{}, {0.1}, {std::nan(""), 0}, {0.1, 2}})
    EXPECT_FALSE(lower.Load(wrong));
}

TEST(SamplingRate, RefusesRatesThatAreNoShares) {
  EXPECT_FALSE((SamplingRateOptions{.rate = 1.5}).Validate().ok());
  EXPECT_FALSE((SamplingRateOptions{.rate = std::nan("")}).Validate().ok());
  EXPECT_FALSE((SamplingRateOptions{.rate = 0.1, .least = 0.2}).Validate().ok());
  EXPECT_TRUE((SamplingRateOptions{.rate = 0}).Validate().ok());
}

}  // namespace
}  // namespace freshet::deploy
