#include "base/metrics.h"

#include <gtest/gtest.h>

#include <thread>

namespace freshet::base {
namespace {

TEST(Metrics, TextIsPrometheusTextFormat) {
  Metrics metrics;
  metrics.counter("freshet_samples_total", "model=\"a\"", "Rows learned from").Add(3);
  metrics.counter("freshet_samples_total", "model=\"b\"", "Rows learned from").Add();
  metrics.total("freshet_cpu_seconds_total", "", "Time").Set(1.5);
  metrics.gauge("freshet_loss", "", "Mean loss").Set(0.25);
  Histogram& seconds = metrics.histogram("freshet_seconds", "verb=\"predict\"", "Time taken", {0.1, 1});
  for (const double value : {0.05, 0.1, 0.5, 3.0}) seconds.Observe(value);
  EXPECT_EQ(metrics.Text(),
            "# HELP freshet_samples_total Rows learned from\n"
            "# TYPE freshet_samples_total counter\n"
            "freshet_samples_total{model=\"a\"} 3\n"
            "freshet_samples_total{model=\"b\"} 1\n"
            "# HELP freshet_cpu_seconds_total Time\n"
            "# TYPE freshet_cpu_seconds_total counter\n"
            "freshet_cpu_seconds_total 1.5\n"
            "# HELP freshet_loss Mean loss\n"
            "# TYPE freshet_loss gauge\n"
            "freshet_loss 0.25\n"
            "# HELP freshet_seconds Time taken\n"
            "# TYPE freshet_seconds histogram\n"
            "freshet_seconds_bucket{verb=\"predict\",le=\"0.1\"} 2\n"
            "freshet_seconds_bucket{verb=\"predict\",le=\"1\"} 3\n"
            "freshet_seconds_bucket{verb=\"predict\",le=\"+Inf\"} 4\n"
            "freshet_seconds_sum{verb=\"predict\"} 3.65\n"
            "freshet_seconds_count{verb=\"predict\"} 4\n");
}

TEST(Metrics, AskingTwiceGivesTheSameObject) {
  Metrics metrics;
  Counter& first = metrics.counter("a", "", "");
  for (int i = 0; i < 100; ++i) metrics.counter("a", "k=\"" + std::to_string(i) + "\"", "");
  EXPECT_EQ(&first, &metrics.counter("a", "", ""));
}

TEST(Metrics, NothingIsLostWhenManyThreadsCount) {
  Metrics metrics;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&metrics] {
      for (int i = 0; i < 1000; ++i) {
        metrics.counter("c", "", "").Add();
        metrics.histogram("h", "", "", {1}).Observe(0.5);
        if (i % 100 == 0) (void)metrics.Text();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(metrics.counter("c", "", "").value(), 4000u);
  EXPECT_EQ(metrics.histogram("h", "", "", {1}).bucket(0), 4000u);
  EXPECT_EQ(metrics.histogram("h", "", "", {1}).sum(), 2000.0);
}

}  // namespace
}  // namespace freshet::base
