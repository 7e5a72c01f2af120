#include "base/trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "base/simulated_clock.h"
#include "base/str.h"

namespace freshet::base {
namespace {

using std::chrono::microseconds;

Clock::Duration Same(Clock::Duration time) { return time; }

nlohmann::json Parse(const Trace& trace, const std::function<Clock::Duration(Clock::Duration)>& time = Same) {
  return nlohmann::json::parse(Str("[", trace.ToJson(3, "rank 3 on \"a\\b\"", "clock", time), "]"));
}

TEST(Trace, SpansComeOutAsCompleteEventsOnTheClockAskedFor) {
  ManualClock clock;
  Trace trace(clock);
  clock.Advance(microseconds(100));
  {
    const Span outer(&trace, "step", Trace::kTraining, {.step = 7});
    clock.Advance(microseconds(5));
    const Span inner(&trace, "exchange", Trace::kFabric, {.bucket = 1, .bytes = 4096, .algorithm = "ring"});
    clock.Advance(microseconds(20));
  }
  const auto events = Parse(trace, [](Clock::Duration time) { return time - microseconds(40); });
  ASSERT_EQ(events.size(), 6u);  // a name and a label of the process, two names of tracks, two spans
  EXPECT_EQ(events[0]["args"]["name"], "rank 3 on \"a\\b\"");
  EXPECT_EQ(events[2]["args"]["name"], "training");
  EXPECT_EQ(events[3]["args"]["name"], "fabric");
  const auto &inner = events[4], &outer = events[5];
  EXPECT_EQ(outer["ph"], "X");
  EXPECT_EQ(outer["pid"], 3);
  EXPECT_EQ(outer["args"]["step"], 7);
  EXPECT_FALSE(outer["args"].contains("bytes"));
  EXPECT_DOUBLE_EQ(outer["ts"].get<double>(), 60);
  EXPECT_DOUBLE_EQ(outer["dur"].get<double>(), 25);
  EXPECT_EQ(inner["tid"], 1);
  EXPECT_EQ(inner["args"], (nlohmann::json{{"bucket", 1}, {"bytes", 4096}, {"algorithm", "ring"}}));
  EXPECT_DOUBLE_EQ(inner["ts"].get<double>(), 65);
  EXPECT_DOUBLE_EQ(inner["dur"].get<double>(), 20);
}

TEST(Trace, KeepsSoManySpansAndCountsTheRest) {
  const SystemClock clock;
  Trace trace(clock, 1000);
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t t = 0; t < 4; ++t)
      threads.emplace_back([&trace, t] {
        for (std::uint64_t i = 0; i < 400; ++i) const Span span(&trace, "compute", Trace::kThreads + t, {.step = i});
      });
  }
  EXPECT_EQ(trace.size(), 1000u);
  EXPECT_EQ(trace.dropped(), 600u);
  EXPECT_GE(Parse(trace).size(), 1003u);
}

TEST(Trace, WithoutOneASpanIsNothing) { const Span span(nullptr, "compute", Trace::kTraining, {.step = 1}); }

}  // namespace
}  // namespace freshet::base
