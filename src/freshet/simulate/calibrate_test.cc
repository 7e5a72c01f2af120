#include "simulate/calibrate.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/clock.h"
#include "fabric/threads/threads_fabric.h"

namespace freshet::simulate {
namespace {

TEST(Calibrate, AGroupThatSharesAHostHasNoLink) {
  base::SystemClock clock;
  constexpr int kWorkers = 5;
  fabric::ThreadsGroup group(kWorkers, clock);
  std::vector<Calibration> seen(kWorkers);
  std::vector<Result<void>> measured(kWorkers);
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < kWorkers; ++rank)
    threads.emplace_back([&, rank] {
      measured[rank] = MeasureExchange(group.member(static_cast<int>(rank)), clock, 0.002, seen[rank]);
    });
  threads.clear();
  for (const Result<void>& one : measured) ASSERT_TRUE(one.ok()) << one.error().text;
  const fabric::sim::Platform usual;
  const fabric::sim::Platform& here = seen[0].platform;
  EXPECT_NE(here.local_us, usual.local_us);
  EXPECT_NE(here.add_gb_s, usual.add_gb_s);
  EXPECT_EQ(here.link_us, usual.link_us);
  EXPECT_GT(seen[0].work["rows"], 0);
  EXPECT_TRUE(here.Validate().ok());
  EXPECT_EQ(seen[kWorkers - 1].platform.add_gb_s, usual.add_gb_s);  // it took no part in what two measure
}

TEST(Calibrate, OneAloneIsRefused) {
  base::SystemClock clock;
  fabric::ThreadsGroup group(1, clock);
  Calibration calibration;
  EXPECT_FALSE(MeasureExchange(group.member(0), clock, 0.001, calibration).ok());
}

TEST(Calibrate, CostsOfABatchAreOfItsBlocks) {
  base::SystemClock clock;
  for (const char* const name : {"mlp", "url-like"}) {
    const Subject subject = Subject::Of(name).value();
    const auto points = MeasureModel(subject, {2, 8}, {1}, 0, clock, 0.002);
    ASSERT_TRUE(points.ok()) << points.error().text;
    ASSERT_EQ(points.value().size(), 2u);
    for (const MeasuredCosts::Point& point : points.value()) {
      ASSERT_EQ(point.cost.finished.size(), subject.model->Blocks().size());
      for (const double moment : point.cost.finished) {
        EXPECT_GT(moment, 0);
        EXPECT_LE(moment, point.cost.compute);
      }
      EXPECT_GT(point.cost.apply, 0);
    }
  }
}

}  // namespace
}  // namespace freshet::simulate
