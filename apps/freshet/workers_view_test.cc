#include "workers_view.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "strategy/worlds_testing.h"

namespace freshet::cli {
namespace {

using strategy::StepTimes;

// Moves by as much every time it is looked at: who has a faster one is slower.
class TickingClock final : public base::Clock {
 public:
  explicit TickingClock(Duration tick) : tick_(tick) {}
  Duration Now() const override { return now_ += tick_; }
  Duration Wall() const override { return Now(); }
  void Sleep(Duration) override {}

 private:
  const Duration tick_;
  mutable Duration now_{0};
};

// What is shown of three workers, of whom one takes so many times as long for everything.
std::vector<WorkerLine> RunWithASlowOne(int slow, int times) {
  const strategy::Task task = strategy::MakeTask("perceptron", 200, 1);
  std::vector<WorkerLine> lines;
  fabric::RunMembers(3, [&](fabric::Fabric& fabric) {
    strategy::TestLearner learner(task);
    fabric::Collectives collectives(fabric);
    const TickingClock clock(std::chrono::milliseconds(fabric.rank() == slow ? 50 * times : 50));
    strategy::StrategyOptions options;
    options.batch = 24;
    const auto made = strategy::Strategy::Make(options, {collectives, *learner.model, *learner.parameters,
                                                         *learner.optimizer, learner.memory, clock, nullptr});
    const data::Batch piece = task.rows.batch().Slice(0, 24);
    std::vector<float> scores(24 * learner.model->scores());
    for (int step = 0; step < 20; ++step)
      ASSERT_TRUE(made.value()->Step(piece, made.value()->Share(piece), scores).ok());
    auto gathered = GatherWorkers(collectives, made.value()->times());
    if (fabric.rank() == 0) lines = std::move(gathered).value();
  });
  return lines;
}

TEST(WorkersView, NamesAWorkerThatIsSlowAndNoOther) {
  const std::string text = ToText(RunWithASlowOne(2, 4), false);
  EXPECT_NE(text.find("straggler    rank 2 on localhost"), std::string::npos) << text;
  EXPECT_EQ(text.find("straggler    rank 0"), std::string::npos) << text;
  EXPECT_EQ(text.find("straggler    rank 1"), std::string::npos) << text;
  EXPECT_EQ(ToText(RunWithASlowOne(2, 1), false).find("straggler"), std::string::npos);
}

TEST(WorkersView, OfTwoWorkersTheSlowOneIsNamedWithWhatItIsSlowAt) {
  std::vector<WorkerLine> workers(2);
  workers[1].rank = 1;
  workers[1].host = "far";
  workers[0].times.compute = workers[1].times.compute = 2;
  workers[1].times.read = 5;
  const std::string text = ToText(workers, false);
  EXPECT_NE(text.find("straggler    rank 1 on far: 7.0 s of work where the median of the others is 2.0 s, mostly read"),
            std::string::npos)
      << text;
}

TEST(WorkersView, SharesOfAStepAddUpToAllOfIt) {
  const auto workers = RunWithASlowOne(0, 1);
  const auto json = StepJson(workers);
  double sum = 0;
  for (const char* part : {"read", "compute", "wait", "exchange", "apply"}) sum += json.at(part).get<double>();
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_NEAR(json.at("seconds").get<double>(), workers[0].times.total() / 20, 1e-9);
  EXPECT_NE(ToText(workers, false).find(" %, apply "), std::string::npos);
}

TEST(WorkersView, WhatWasSavedCountsWhatWentThroughSharedMemoryToo) {
  std::vector<WorkerLine> workers(1);
  StepTimes& times = workers[0].times;
  times.bytes_dense = 1000;
  times.bytes_sent = 50;
  times.bytes_shared = 200;
  std::string text = ToText(workers, true);
  EXPECT_NE(text.find("75.0 %"), std::string::npos) << text;
  EXPECT_NE(text.find("4.0 times fewer bytes"), std::string::npos) << text;
  times.bytes_shared = 950;
  text = ToText(workers, true);
  EXPECT_EQ(text.find('%'), std::string::npos) << text;
}

}  // namespace
}  // namespace freshet::cli
