#include "launch_group.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <csignal>

#include "launch_testing.h"

namespace freshet::cli {
namespace {

constexpr auto kGrace = std::chrono::minutes(1);

// Workers that are shell scripts; each knows its number as $R. The clock moves only where a test moves it.
class LaunchGroupTest : public testing::Test {
 protected:
  // `each_tick` may give a signal.
  Group::Outcome Run(
      int workers, const std::string& script, const std::function<int()>& each_tick = [] { return 0; }) {
    Group group(clock_, {.grace = kGrace, .stop_grace = kGrace});
    for (int rank = 0; rank < workers; ++rank) {
      WorkerStart start;
      start.rank = rank;
      start.program = "sh";
      start.arguments = {"sh", "-c", script};
      start.environment = {Str("R=", rank), "PATH=/bin:/usr/bin"};
      start.out = WorkerStart::Output::kMark;
      start.out_to = out_.number();
      start.err_to = err_.number();
      auto worker = Worker::Start(start);
      EXPECT_TRUE(worker.ok()) << worker.error().text;
      if (worker.ok()) group.Add(std::move(worker).value());
    }
    return group.Run(each_tick);
  }
  static std::string Content(const Descriptor& file) {
    std::string text(1 << 20, '\0');
    const ssize_t got = pread(file.number(), text.data(), text.size(), 0);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }
  std::string out() const { return Content(out_); }
  bool Said(const std::string& text) const { return out().find(text) != std::string::npos; }
  // The number that a worker wrote after this.
  pid_t NumberAfter(const std::string& text) const {
    const std::string all = out();
    const std::size_t at = all.find(text);
    return at == std::string::npos ? 0 : std::atoi(all.c_str() + at + text.size());
  }
  // Rank 0, which writes "failing PID" at last, is known to have ended, and rank 1 is ready for what comes.
  bool OneFailedOneReady() const {
    const pid_t pid = NumberAfter("failing ");
    return pid > 0 && kill(pid, 0) != 0 && Said("ready 1");
  }
  // Gives a signal so many times once both workers are ready.
  std::function<int()> SignalOnceReady(int signal, int times = 1) {
    return [this, signal, times]() mutable { return Said("ready 0") && Said("ready 1") && times-- > 0 ? signal : 0; };
  }
  static std::string Cause(const Group::Outcome& outcome) { return outcome.cause ? outcome.cause->Text() : "none"; }

  base::ManualClock clock_;
  const Descriptor out_{memfd_create("out", MFD_CLOEXEC)}, err_{memfd_create("err", MFD_CLOEXEC)};
};

TEST_F(LaunchGroupTest, EndsWellWhenAllDo) {
  const auto outcome = Run(3, "echo hello");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(Cause(outcome), "none");
}

TEST_F(LaunchGroupTest, MarksEveryLine) {
  Run(2, "echo one; echo two; echo three >&2; printf four");
  std::vector<std::string> lines;
  const std::string text = out();
  for (const std::string_view line : Split(text, '\n')) lines.emplace_back(line);
  std::stable_sort(lines.begin(), lines.end(), [](auto& a, auto& b) { return a.substr(0, 8) < b.substr(0, 8); });
  EXPECT_EQ(Join(lines, "|"), "|[rank 0] one|[rank 0] two|[rank 0] four|[rank 1] one|[rank 1] two|[rank 1] four");
  EXPECT_NE(Content(err_).find("[rank 1] three\n"), std::string::npos);
}

TEST_F(LaunchGroupTest, CarriesLongOutputWhole) {
  Run(2, "i=0; while [ $i -lt 3000 ]; do echo $R $i some words to make the line longer; i=$((i+1)); done");
  const std::string text = out();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 6000);
  for (const std::string_view line : Split(text, '\n')) {
    ASSERT_TRUE(line.empty() || line.starts_with("[rank 0] 0 ") || line.starts_with("[rank 1] 1 ")) << line;
  }
}

TEST_F(LaunchGroupTest, NamesTheOneThatFailed) {
  const auto outcome = Run(3, "[ $R = 1 ] && exit 3; exit 0");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(Cause(outcome), "rank 1 on localhost: exit code 3");
}

TEST_F(LaunchGroupTest, NamesTheSignalThatEndedOne) {
  const auto outcome = Run(2, "[ $R = 1 ] && kill -SEGV $$; exit 0");
  EXPECT_EQ(outcome.code, 128 + SIGSEGV);
  EXPECT_NE(Cause(outcome).find("rank 1 on localhost: ended by signal 11"), std::string::npos) << Cause(outcome);
}

TEST_F(LaunchGroupTest, TheLossOfAnotherIsNoCauseWhenThereIsOne) {
  // Ranks 0 and 1 notice before rank 2 has wholly ended.
  const auto outcome = Run(3, "[ $R = 2 ] || exit 4; sleep 0.05; exit 5");
  EXPECT_EQ(outcome.code, 5);
  EXPECT_EQ(Cause(outcome), "rank 2 on localhost: exit code 5");
  EXPECT_EQ(Run(3, "exit 4").code, 4);
}

TEST_F(LaunchGroupTest, OthersThatDoNotEndAreAskedTo) {
  bool moved = false;
  const auto outcome = Run(2,
                           "[ $R = 0 ] && echo failing $$ && exit 4; trap 'echo asked; exit 143' TERM; echo ready $R; "
                           "while :; do sleep 0.01; done",
                           [&] {
                             if (!moved && OneFailedOneReady()) clock_.Advance(kGrace), moved = true;
                             return 0;
                           });
  EXPECT_TRUE(Said("[rank 1] asked"));
  EXPECT_EQ(outcome.code, 4) << "who was told to end is not the cause";
}

TEST_F(LaunchGroupTest, OthersThatDoNotListenAreKilled) {
  for (const char* const deaf :
       {"trap '' TERM INT; echo ready $R $$; while :; do sleep 0.01; done", "echo ready $R $$; kill -STOP $$"}) {
    const auto outcome = Run(2, Str("[ $R = 0 ] && echo failing $$ && exit 4; ", deaf), [&] {
      if (OneFailedOneReady()) clock_.Advance(kGrace);
      return 0;
    });
    EXPECT_EQ(outcome.code, 4);
    EXPECT_TRUE(SoonGone(NumberAfter("ready 1 ")));
  }
}

TEST_F(LaunchGroupTest, PassesASignalOnAndExitsByIt) {
  const auto outcome =
      Run(2, "trap 'echo got $R; exit 130' INT; echo ready $R; while :; do sleep 0.01; done", SignalOnceReady(SIGINT));
  EXPECT_EQ(outcome.code, 130);
  EXPECT_EQ(outcome.stopped_by, SIGINT);
  EXPECT_EQ(Cause(outcome), "none");
  EXPECT_TRUE(Said("got 0") && Said("got 1"));
}

TEST_F(LaunchGroupTest, StoppingIsNoFailureWhenWorkersFinishWell) {
  const char* const script = "trap 'exit 0' TERM; echo ready $R; while :; do sleep 0.01; done";
  EXPECT_EQ(Run(2, script, SignalOnceReady(SIGTERM)).code, 0);
}

TEST_F(LaunchGroupTest, TheThirdSignalKills) {
  const char* const script = "trap '' TERM; echo ready $R; while :; do sleep 0.01; done";
  EXPECT_EQ(Run(2, script, SignalOnceReady(SIGTERM, 3)).code, 128 + SIGTERM);
}

TEST_F(LaunchGroupTest, WhatAWorkerLeavesBehindEndsWithIt) {
  Run(1, "sleep 1000 & echo left $!");
  ASSERT_GT(NumberAfter("left "), 1);
  EXPECT_TRUE(SoonGone(NumberAfter("left ")));
}

TEST_F(LaunchGroupTest, AProgramThatIsNotThereIsSaidByItsWorker) {
  WorkerStart start;
  start.program = "/nowhere/freshet";
  start.arguments = {"freshet"};
  start.err_to = err_.number();
  Group group(clock_, {});
  group.Add(std::move(Worker::Start(start)).value());
  EXPECT_EQ(group.Run([] { return 0; }).code, 127);
  EXPECT_NE(Content(err_).find("[rank 0] freshet: cannot start /nowhere/freshet"), std::string::npos) << Content(err_);
}

}  // namespace
}  // namespace freshet::cli
