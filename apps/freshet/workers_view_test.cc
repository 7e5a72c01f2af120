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
    auto gathered = GatherWorkers(collectives, made.value()->times(), made.value()->report());
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

TEST(WorkersView, RowsThatWereHandedOnRoundARingAreShownApart) {
  std::vector<WorkerLine> workers(2);
  for (WorkerLine& worker : workers) worker.times.bytes_next = 1000;
  EXPECT_EQ(ToText(workers, false).find("rows handed on"), std::string::npos);
  workers[1].times.bytes_handed = 2'000'000;
  const std::string text = ToText(workers, false);
  EXPECT_NE(text.find("to the one before    rows handed on"), std::string::npos) << text;
  EXPECT_NE(text.find("2.0 MB"), std::string::npos) << text;
  EXPECT_EQ(ToJson(workers[1]).at("bytes_handed"), 2'000'000);
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

TEST(WorkersView, OfARingSaysWhoWasIdleAndWhatWentWhere) {
  std::vector<WorkerLine> workers(2);
  workers[1].rank = 1;
  EXPECT_EQ(ToText(workers, false).find("idle"), std::string::npos);
  workers[0].times.compute = 3;
  workers[0].times.wait = 1;
  workers[0].times.bytes_next = 2'000'000;
  workers[1].times.compute = 4;
  workers[1].times.bytes_back = 1'000'000;
  const std::string text = ToText(workers, false);
  for (const char* piece : {"ring      idle    to the next    to the one before\n", "0  25.0 %", "2.0 MB", "1   0.0 %"})
    EXPECT_NE(text.find(piece), std::string::npos) << piece << " is not in\n" << text;
  EXPECT_EQ(ToJson(workers[0]).at("idle"), 0.25);
  EXPECT_EQ(ToJson(workers[1]).at("bytes_back"), 1'000'000);
  EXPECT_EQ(text.find("moved"), std::string::npos) << text;
  workers[1].times.bytes_moved = 3'000'000;
  const std::string moved = ToText(workers, false);
  for (const char* piece : {"weights moved\n", "3.0 MB\n"})
    EXPECT_NE(moved.find(piece), std::string::npos) << piece << " is not in\n" << moved;
  EXPECT_EQ(ToJson(workers[1]).at("bytes_moved"), 3'000'000);
  EXPECT_EQ(moved.find("copies"), std::string::npos) << moved;
  workers[0].times.bytes_copied = 4'000'000;
  EXPECT_NE(ToText(workers, false).find("copies\n"), std::string::npos) << ToText(workers, false);
  EXPECT_EQ(ToJson(workers[0]).at("bytes_copied"), 4'000'000);
}

TEST(WorkersView, SaysWhoWasWaitedFor) {
  std::vector<WorkerLine> workers(3);
  for (int rank = 0; rank < 3; ++rank) workers[static_cast<std::size_t>(rank)].rank = rank;
  workers[0].server = {.waited_for = {0, 0.004, 0.7}};
  workers[1].server = {.waited_for = {0.1, 0, 0.5}};
  workers[2].server = {.waited_for = {0, 0, 0}};
  const std::string text = ToText(workers, false);
  EXPECT_NE(text.find("waited for   rank 2 1.20 s, rank 0 0.10 s\n"), std::string::npos) << text;
  EXPECT_EQ(ToJson(workers[1]).at("waited_for").dump(), R"([{"rank":0,"seconds":0.1},{"rank":2,"seconds":0.5}])");
  EXPECT_FALSE(ToJson(workers[2]).contains("waited_for"));
  workers[0].server->waited_for = workers[1].server->waited_for = {0, 0, 0};
  EXPECT_EQ(ToText(workers, false).find("waited"), std::string::npos);
}

TEST(WorkersView, SaysWhatIsHotWhereSomethingIs) {
  std::vector<WorkerLine> workers(2);
  for (int rank = 0; rank < 2; ++rank) {
    strategy::server::Report report;
    report.updates = 3;
    report.blocks.push_back(
        {.name = "weights", .rows = 100'000, .pulled = 250'000, .pushed = 250'000, .range_rows = 25'000});
    workers[static_cast<std::size_t>(rank)].rank = rank;
    workers[static_cast<std::size_t>(rank)].server = report;
  }
  auto& first = workers[0].server->blocks[0];
  auto& second = workers[1].server->blocks[0];
  first.busiest = {{0, 25'000, 300'000}};
  second.busiest = {{75'000, 100'000, 290'000}};
  first.hottest = {{77, 9'000}};
  EXPECT_EQ(ToText(workers, false).find("hot "), std::string::npos);  // what there is is spread evenly enough
  first.hottest = {{77, 30'000}, {5, 9'000}};
  second.hottest = {{99'999, 41'000}, {80'000, 100}};
  std::string text = ToText(workers, false);
  EXPECT_NE(text.find("hot          rows of weights: 99999 (4.1 %), 77 (3.0 %)\n"), std::string::npos) << text;
  second.busiest[0].bytes = 610'000;
  text = ToText(workers, false);
  EXPECT_NE(text.find("77 (3.0 %); busiest range 75000-99999 of weights with 61 % of 1.0 MB\n"), std::string::npos)
      << text;
  const auto json = ToJson(workers[1]).at("server");
  EXPECT_EQ(json.at("updates"), 3);
  EXPECT_EQ(json.at("blocks")[0].at("hottest_rows")[0].dump(), R"({"row":99999,"bytes":41000})");
  EXPECT_EQ(json.at("blocks")[0].at("busiest_ranges")[0].at("bytes"), 610'000);
  EXPECT_FALSE(json.contains("waited_for"));
}

}  // namespace
}  // namespace freshet::cli
