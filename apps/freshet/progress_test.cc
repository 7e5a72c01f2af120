#include "progress.h"

#include <gtest/gtest.h>

namespace freshet::cli {
namespace {

// Two epochs of 3,000 rows, of which those of the first cost 1 and of the second 0.5, told now and then; lines come when
// rows have doubled, so that one epoch has ended between two of them.
TEST(ProgressView, TellsTheLossSinceTheLastLineThoughAnEpochHasEndedMeanwhile) {
  base::SystemClock clock;
  ProgressView view(false, clock);
  testing::internal::CaptureStderr();
  for (std::uint64_t rows = 500; rows <= 6000; rows += 500) {
    const int epoch = rows > 3000 ? 1 : 0;
    const double of_epoch = static_cast<double>(rows - (epoch == 0 ? 0 : 3000)), cost = epoch == 0 ? 1 : 0.5;
    view.Show({.epoch = epoch,
               .epochs = 2,
               .rows = rows,
               .mean_loss = cost,
               .total_loss = cost * of_epoch,
               .weight = of_epoch,
               .error_rate = {},
               .rmse = {},
               .fraction = {}});
  }
  view.Done();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            " average      since         rows    epoch\n    loss       last\n"
            "  1.0000    1.0000       1,000     1/2  \n"
            "  1.0000    1.0000       2,000     1/2  \n"
            "  0.5000    0.7500       4,000     2/2  \n");
  for (const Point& point : view.curve().points()) EXPECT_DOUBLE_EQ(point.y, point.x > 3000 ? 0.5 : 1);
}

}  // namespace
}  // namespace freshet::cli
