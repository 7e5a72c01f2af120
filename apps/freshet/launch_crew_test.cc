#include <algorithm>

#include "launch_crew_testing.h"

namespace freshet::cli {
namespace {

TEST_F(LaunchCrewTest, EndsWellWhenAllDo) {
  const auto outcome = Run(3, "echo hello");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(Cause(outcome), "none");
}

TEST_F(LaunchCrewTest, MarksEveryLine) {
  Run(2, "echo one; echo two; echo three >&2; printf four");
  std::vector<std::string> lines;
  const std::string text = out();
  for (const std::string_view line : Split(text, '\n')) lines.emplace_back(line);
  std::stable_sort(lines.begin(), lines.end(), [](auto& a, auto& b) { return a.substr(0, 8) < b.substr(0, 8); });
  EXPECT_EQ(Join(lines, "|"), "|[rank 0] one|[rank 0] two|[rank 0] four|[rank 1] one|[rank 1] two|[rank 1] four");
  EXPECT_NE(Content(err_).find("[rank 1] three\n"), std::string::npos);
}

TEST_F(LaunchCrewTest, CarriesLongOutputWhole) {
  Run(2, "i=0; while [ $i -lt 3000 ]; do echo $R $i some words to make the line longer; i=$((i+1)); done");
  const std::string text = out();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 6000);
  for (const std::string_view line : Split(text, '\n')) {
    ASSERT_TRUE(line.empty() || line.starts_with("[rank 0] 0 ") || line.starts_with("[rank 1] 1 ")) << line;
  }
}

TEST_F(LaunchCrewTest, NamesTheOneThatFailed) {
  const auto outcome = Run(3, "[ $R = 1 ] && exit 3; exit 0");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(Cause(outcome), "rank 1 on localhost: exit code 3");
}

TEST_F(LaunchCrewTest, NamesTheSignalThatEndedOne) {
  const auto outcome = Run(2, "[ $R = 1 ] && kill -SEGV $$; exit 0");
  EXPECT_EQ(outcome.code, 128 + SIGSEGV);
  EXPECT_NE(Cause(outcome).find("rank 1 on localhost: ended by signal 11"), std::string::npos) << Cause(outcome);
}

TEST_F(LaunchCrewTest, TheLossOfAnotherIsNoCauseWhenThereIsOne) {
  // Ranks 0 and 1 notice before rank 2 has wholly ended.
  const auto outcome = Run(3, "[ $R = 2 ] || exit 4; sleep 0.05; exit 5");
  EXPECT_EQ(outcome.code, 5);
  EXPECT_EQ(Cause(outcome), "rank 2 on localhost: exit code 5");
  EXPECT_EQ(Run(3, "exit 4").code, 4);
}

TEST_F(LaunchCrewTest, OthersThatDoNotEndAreAskedTo) {
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

TEST_F(LaunchCrewTest, OthersThatDoNotListenAreKilled) {
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

TEST_F(LaunchCrewTest, PassesASignalOnAndExitsByIt) {
  const auto outcome =
      Run(2, "trap 'echo got $R; exit 130' INT; echo ready $R; while :; do sleep 0.01; done", SignalOnceReady(SIGINT));
  EXPECT_EQ(outcome.code, 130);
  EXPECT_EQ(outcome.stopped_by, SIGINT);
  EXPECT_EQ(Cause(outcome), "none");
  EXPECT_TRUE(Said("got 0") && Said("got 1"));
}

TEST_F(LaunchCrewTest, StoppingIsNoFailureWhenWorkersFinishWell) {
  const char* const script = "trap 'exit 0' TERM; echo ready $R; while :; do sleep 0.01; done";
  EXPECT_EQ(Run(2, script, SignalOnceReady(SIGTERM)).code, 0);
}

TEST_F(LaunchCrewTest, TheThirdSignalKills) {
  const char* const script = "trap '' TERM; echo ready $R; while :; do sleep 0.01; done";
  EXPECT_EQ(Run(2, script, SignalOnceReady(SIGTERM, 3)).code, 128 + SIGTERM);
}

TEST_F(LaunchCrewTest, WhatAWorkerLeavesBehindEndsWithIt) {
  Run(1, "sleep 1000 & echo left $!");
  ASSERT_GT(NumberAfter("left "), 1);
  EXPECT_TRUE(SoonGone(NumberAfter("left ")));
}

TEST_F(LaunchCrewTest, AProgramThatIsNotThereIsSaidByItsWorker) {
  WorkerStart start;
  start.program = "/nowhere/freshet";
  start.arguments = {"freshet"};
  start.err_to = err_.get();
  Crew crew(clock_, {});
  crew.Add(std::move(Worker::Start(start)).value());
  EXPECT_EQ(crew.Run([] { return 0; }).code, 127);
  EXPECT_NE(Content(err_).find("[rank 0] freshet: cannot start /nowhere/freshet"), std::string::npos) << Content(err_);
}

}  // namespace
}  // namespace freshet::cli
