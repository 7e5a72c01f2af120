#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>

#include "base/simulated_clock.h"
#include "launch_crew.h"
#include "launch_testing.h"

namespace freshet::cli {

inline constexpr auto kGrace = std::chrono::minutes(1);

// Workers that are shell scripts; each knows its number as $R. The clock moves only where a test moves it.
class LaunchCrewTest : public testing::Test {
 protected:
  // `each_tick` may give a signal.
  Crew::Outcome Run(
      int workers, const std::string& script, const std::function<int()>& each_tick = [] { return 0; }) {
    Crew crew(clock_, {.grace = kGrace, .stop_grace = kGrace});
    for (int rank = 0; rank < workers; ++rank) {
      WorkerStart start;
      start.rank = rank;
      start.program = "sh";
      start.arguments = {"sh", "-c", script};
      start.environment = {Str("R=", rank), "PATH=/bin:/usr/bin"};
      start.out = WorkerStart::Output::kMark;
      start.out_to = out_.get();
      start.err_to = err_.get();
      auto worker = Worker::Start(start);
      EXPECT_TRUE(worker.ok()) << worker.error().text;
      if (worker.ok()) crew.Add(std::move(worker).value());
    }
    return crew.Run(each_tick);
  }
  static std::string Content(const base::Descriptor& file) {
    std::string text(1 << 20, '\0');
    const ssize_t got = pread(file.get(), text.data(), text.size(), 0);
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
  static std::string Cause(const Crew::Outcome& outcome) { return outcome.cause ? outcome.cause->Text() : "none"; }

  base::ManualClock clock_;
  const base::Descriptor out_{memfd_create("out", MFD_CLOEXEC)}, err_{memfd_create("err", MFD_CLOEXEC)};
};

}  // namespace freshet::cli
