#include "base/log.h"
#include "base/simulated_clock.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <thread>

namespace freshet::base {
namespace {

class LogTest : public testing::Test {
 protected:
  ManualClock clock_;
  std::vector<std::string> lines_;
  Log log_{clock_, [this](std::string_view line) { lines_.emplace_back(line); }};
};

TEST_F(LogTest, WritesOneLineOfFieldsWithTimeAndLevel) {
  clock_.Advance(std::chrono::milliseconds(1'769'860'800'123));
  log_.Info("checkpoint", "rows", 4096, "share", 0.5, "file", "a.ckpt");
  log_.Warn("slow");
  log_.Error("lost", "rank", 2);
  EXPECT_EQ(lines_, (std::vector<std::string>{
                        "2026-01-31T12:00:00.123Z INFO checkpoint rows=4096 share=0.5 file=a.ckpt",
                        "2026-01-31T12:00:00.123Z WARN slow", "2026-01-31T12:00:00.123Z ERROR lost rank=2"}));
}

TEST_F(LogTest, PadsMilliseconds) {
  clock_.Advance(std::chrono::milliseconds(7));
  log_.Info("start");
  EXPECT_EQ(lines_.at(0), "1970-01-01T00:00:00.007Z INFO start");
}

TEST_F(LogTest, QuotesValuesSoThatAnEventStaysOneLineOfPairs) {
  log_.Info("e", "a", "two words", "b", "x=\"y\\", "c", "", "d", "up\r\n\x1b[2Jdown");
  const std::string& line = lines_.at(0);
  EXPECT_NE(line.find("a=\"two words\" b=\"x=\\\"y\\\\\" c=\"\" d=\"up   [2Jdown\""), std::string::npos) << line;
  EXPECT_TRUE(std::none_of(line.begin(), line.end(), [](char c) { return c < ' '; }));
}

TEST_F(LogTest, LeavesOutWhatIsBelowItsLevel) {
  int count = 0;
  Log quiet(
      clock_, [&](std::string_view) { ++count; }, Level::kWarn);
  quiet.Info("a");
  quiet.Warn("b");
  quiet.Error("c");
  EXPECT_EQ(count, 2);
}

TEST_F(LogTest, LinesOfManyThreadsDoNotMix) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([this, t] {
      for (int i = 0; i < 200; ++i) log_.Info("tick", "thread", t);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lines_.size(), 800u);
}

}  // namespace
}  // namespace freshet::base
