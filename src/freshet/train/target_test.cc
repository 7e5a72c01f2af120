// Regression on numbers as they come: prices, not numbers near one.

#include <cmath>

#include "base/random.h"
#include "train/bench_testing.h"

namespace freshet::train {
namespace {

constexpr double kNoise = 10'000;

class TargetTest : public testing::Test {
 protected:
  // Columns of very different sizes that make up a price of 180,000 ± 80,000, and noise.
  Plan Prices(std::size_t rows, double unit = 1) {
    base::Random random(5, "prices");
    std::string text = "area,rooms,distance,tax,price\n";
    for (std::size_t r = 0; r < rows; ++r) {
      const double a = random.Normal(), b = random.Normal(), c = random.Normal(), d = random.Normal();
      const double price = 180'000 + 50'000 * a + 40'000 * b - 40'000 * c + 20'000 * d + kNoise * random.Normal();
      text += Str(1500 + 400 * a, ",", 3 + b, ",", 0.002 * c, ",", 1e6 + 3e5 * d, ",", price * unit, "\n");
    }
    Plan plan;
    plan.path = bench_.scratch / "prices.csv";
    bench_.scratch.Write("prices.csv", text);
    plan.input.task = data::Labels::Kind::kReal;
    plan.model.loss = "squared";
    plan.optimizer.kind = "adagrad";
    plan.optimizer.schedule.rate = 0.15;
    return plan;
  }

  Bench bench_;
};

TEST_F(TargetTest, PricesAreLearnedInOnePassToNearTheirNoise) {
  Plan plan = Prices(5000);
  plan.train.hold_out.fraction = 0.2;
  const BenchOutcome outcome = bench_.Run(plan);
  ASSERT_TRUE(outcome.ok()) << outcome.error->text;
  EXPECT_LT(*outcome.report->held_out->rmse(), 1.1 * kNoise);
  EXPECT_NEAR(*outcome.report->held_out->rmse_of_mean(), 80'000, 8000);
  EXPECT_NEAR(outcome.report->held_out->loss(), std::pow(*outcome.report->held_out->rmse(), 2) / 2, 1000);
  plan.scale_target = false;  // what the scale is for
  const BenchOutcome raw = bench_.Run(plan);
  ASSERT_TRUE(raw.ok()) << raw.error->text;
  EXPECT_GT(*raw.report->held_out->rmse(), *raw.report->held_out->rmse_of_mean());
}

TEST_F(TargetTest, TheUnitOfPricesChangesNothingButTheUnitOfErrors) {
  const BenchOutcome here = bench_.Run(Prices(1000));
  for (const double unit : {1e-25, 1e-4, 1e4, 1e25}) {
    SCOPED_TRACE(unit);
    const BenchOutcome there = bench_.Run(Prices(1000, unit));
    ASSERT_TRUE(there.ok()) << there.error->text;
    EXPECT_NEAR(*there.report->progressive.rmse() / unit, *here.report->progressive.rmse(),
                0.001 * *here.report->progressive.rmse());
  }
}

TEST_F(TargetTest, ARunThatWasStoppedGoesOnTheSame) {
  for (const std::uint64_t batch : {1, 7}) {
    Plan plan = Prices(1000);
    plan.train.epochs = 3;
    plan.train.batch = batch;
    plan.train.hold_out.fraction = 0.1;
    const BenchOutcome whole = bench_.Run(plan);
    plan.train.checkpoint_path = bench_.scratch / Str("run", batch, ".ckpt");
    plan.stop_at = 40;
    ASSERT_EQ(bench_.Run(plan).code(), Code::kStopped);
    plan.stop_at = 0;
    ExpectSame(bench_.Run(plan), whole);
  }
}

TEST_F(TargetTest, LbfgsLearnsPricesToTheirNoiseAndShowsProgressInTheirUnits) {
  Plan plan = Prices(1000);
  plan.by_lbfgs = true;
  plan.train.epochs = 20;
  double last = 0;
  plan.train.progress = [&](const Progress& progress) { last = progress.mean_loss; };
  const BenchOutcome outcome = bench_.Run(plan);
  ASSERT_TRUE(outcome.ok()) << outcome.error->text;
  EXPECT_NEAR(*outcome.report->last_epoch.rmse(), kNoise, 0.05 * kNoise);
  EXPECT_NEAR(last, kNoise * kNoise / 2, 0.1 * kNoise * kNoise);
}

}  // namespace
}  // namespace freshet::train
