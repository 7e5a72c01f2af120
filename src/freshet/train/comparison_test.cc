#include "train/comparison.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "data/generate.h"
#include "data/world_testing.h"
#include "fabric/sim/star_flows.h"
#include "train/server_report.h"

namespace freshet::train {
namespace {

TEST(Comparison, OfAParameterServerItIsKnownWhoWasWaitedFor) {
  data::World world{2};
  base::StringFile file;
  ASSERT_TRUE(data::Generate({.kind = "sea", .rows = 1200}, file).ok());
  Job job;
  job.input.paths = {world.Write("sea.csv", file.text)};
  auto platform = fabric::sim::Platform::Known("ethernet-10g").value();
  platform.nodes = 3;
  fabric::sim::StarFlows flows(platform);
  RowPrice price(1e-4);
  const Arena arena{
      .workers = 3, .straggler = {.times = 4, .rank = 1}, .row_price = price, .platform = &platform, .flows = &flows};
  const auto course = RunCourse(world.env(), job, Contender::Parse("bsp").value(), arena, nullptr);
  ASSERT_TRUE(course.ok()) << course.error().text;
  ASSERT_EQ(course.value().workers.size(), 3u);
  for (const WorkerReport& worker : course.value().workers) {
    ASSERT_TRUE(worker.server.has_value());
    const std::vector<double>& waited = worker.server->waited_for;
    ASSERT_EQ(waited.size(), 3u);
    if (worker.rank == 1) {
      EXPECT_LT(waited[0] + waited[2], 0.1 * worker.times.compute);
    } else {
      EXPECT_GT(waited[1], 2 * worker.times.compute);
      EXPECT_LT(waited[2 - worker.rank], 0.1 * waited[1]);
    }
  }
}

// The mean loss over a twentieth of the way has come down to that of the end of another's, and a hundredth more.
double SecondsTo(const Course& course, double goal, std::size_t window) {
  double loss = 0, rows = 0;
  for (std::size_t i = 0; i < course.moments.size(); ++i) {
    loss += course.moments[i].loss;
    rows += course.moments[i].rows;
    if (i >= window) loss -= course.moments[i - window].loss;
    if (i >= window) rows -= course.moments[i - window].rows;
    if (i + 1 >= window && loss <= goal * rows) return course.moments[i].seconds;
  }
  return 1e9;
}

TEST(Comparison, BulkThatDoesNotWaitForWhoIsAlwaysSlowIsAtALossInLessThanSixTenthsOfTheTime) {
  data::World world{2};
  base::StringFile file;
  ASSERT_TRUE(data::Generate({.kind = "sea", .rows = 6400}, file).ok());
  Job job;
  job.input.paths = {world.Write("sea.csv", file.text)};
  job.epochs = 2;
  job.batch = 64;
  auto platform = fabric::sim::Platform::Known("ethernet-10g").value();
  platform.nodes = 4;
  fabric::sim::StarFlows flows(platform);
  for (const int slow : {0, 1}) {
    SCOPED_TRACE(Str("rank ", slow));
    RowPrice price(2e-5);
    const Arena arena{.workers = 4,
                      .straggler = {.times = 4, .rank = slow},
                      .row_price = price,
                      .platform = &platform,
                      .flows = &flows};
    const auto run = [&](const char* name) {
      return RunCourse(world.env(), job, Contender::Parse(name).value(), arena, nullptr);
    };
    const auto bulk = run("bsp"), backed = run("bsp+1");
    ASSERT_TRUE(bulk.ok()) << bulk.error().text;
    ASSERT_TRUE(backed.ok()) << backed.error().text;
    EXPECT_LT(backed.value().seconds, 0.6 * bulk.value().seconds);
    EXPECT_EQ(backed.value().report.rows, bulk.value().report.rows);
    EXPECT_NEAR(backed.value().report.last_epoch.loss(), bulk.value().report.last_epoch.loss(), 1e-3);
    if (slow == 0) continue;  // moments are those of rank 0
    const double goal = 1.01 * bulk.value().report.last_epoch.loss();
    const double took = SecondsTo(bulk.value(), goal, bulk.value().moments.size() / 20);
    EXPECT_LT(took, 1e9);
    EXPECT_LT(SecondsTo(backed.value(), goal, backed.value().moments.size() / 20), 0.6 * took);
  }
}

// The others of its group wait for it, and make fewer updates; the other group goes on.
TEST(Comparison, OfGroupsThroughAServerWhoIsSlowSlowsItsOwn) {
  data::World world{2};
  base::StringFile file;
  ASSERT_TRUE(data::Generate({.kind = "sea", .rows = 6400}, file).ok());
  Job job;
  job.input.paths = {world.Write("sea.csv", file.text)};
  job.epochs = 1;
  job.batch = 64;
  auto platform = fabric::sim::Platform::Known("ethernet-10g").value();
  platform.nodes = 4;
  fabric::sim::StarFlows flows(platform);
  RowPrice price(2e-5);
  const auto run = [&](const char* name, Straggler slow) {
    const Arena arena{.workers = 4, .straggler = slow, .row_price = price, .platform = &platform, .flows = &flows};
    auto course = RunCourse(world.env(), job, Contender::Parse(name).value(), arena, nullptr);
    EXPECT_TRUE(course.ok()) << course.error().text;
    return course;
  };
  const auto even = run("groups:2:bap", {});
  for (const int slow : {2, 3}) {
    const Straggler straggler{.times = 4, .rank = slow};
    const auto bulk = run("groups:2:bsp", straggler), free = run("groups:2:bap", straggler);
    ASSERT_TRUE(even.ok() && bulk.ok() && free.ok());
    const auto& workers = free.value().workers;
    const auto rows = [&](std::size_t rank) { return static_cast<double>(workers[rank].times.rows); };
    EXPECT_EQ(rows(0) + rows(1) + rows(2) + rows(3), 6400);
    EXPECT_NEAR(rows(0), rows(1), 200);
    EXPECT_NEAR(rows(2), rows(3), 200);
    EXPECT_GT(rows(0), 2.5 * rows(2));
    EXPECT_LT(free.value().seconds, 0.6 * bulk.value().seconds);
    EXPECT_LT(free.value().seconds, 2 * even.value().seconds);  // five eighths of who computes are left
    // In bulk all wait for it; as groups drift apart only its own does.
    EXPECT_GT(bulk.value().workers[0].times.wait + bulk.value().workers[0].times.exchange,
              2 * bulk.value().workers[0].times.compute);
    EXPECT_LT(workers[0].times.wait + workers[0].times.exchange, 0.5 * workers[0].times.compute);
  }
}

TEST(Contender, OfBulkAndAllReduceItIsSaidHowManyAreNotWaitedFor) {
  EXPECT_EQ(Contender::Parse("bsp+2").value().backup, 2);
  EXPECT_EQ(Contender::Parse("bsp+2").value().strategy, "server");
  EXPECT_EQ(Contender::Parse("groups:2:ssp:3").value().synchrony, "ssp:3");
  EXPECT_EQ(Contender::Parse("groups:2:ssp:3").value().detail, "2");
  EXPECT_EQ(Contender::Parse("allreduce:ring+1").value().detail, "ring");
  for (const char* const text : {"bsp+", "bsp+0", "bsp+x", "ssp:3+1", "bap+1", "average:8+1", "gossip+1", "+1", "",
                                 "groups:2:", "groups::bap", "groups:2:tap", "groups:2:bap+1"})
    EXPECT_FALSE(Contender::Parse(text).ok()) << text;
}

// The bytes of a step that the member sends who sends most, by a contender with so many workers, of a model of so many
// features of which each row has twenty.
std::uint64_t BusiestBytes(const std::string& contender, int workers, std::uint32_t features) {
  data::World world{2};
  base::Random random(7, "rows");
  std::string text;
  for (int row = 0; row < 1024; ++row) {
    text += random.Below(2) == 0 ? "+1" : "-1";
    for (std::uint32_t j = 0; j < 20; ++j) text += Str(" ", 1 + j * features / 20 + random.Below(features / 20), ":1");
    text += "\n";
  }
  Job job;
  job.input.paths = {world.Write("rows.svm", text)};
  job.batch = 256;
  job.learning.optimizer = "adagrad";
  job.together.strategy.servers = contender == "bsp" ? 1 : 0;
  const int members = workers + job.together.strategy.servers;
  auto platform = fabric::sim::Platform::Known("ethernet-10g").value();
  platform.nodes = members;
  fabric::sim::StarFlows flows(platform);
  RowPrice price(1e-5);
  const Arena arena{.workers = members, .straggler = {}, .row_price = price, .platform = &platform, .flows = &flows};
  const auto course = RunCourse(world.env(), job, Contender::Parse(contender).value(), arena, nullptr);
  EXPECT_TRUE(course.ok()) << course.error().text;
  if (!course.ok()) return 0;
  EXPECT_LT(course.value().report.progressive.loss(), 0.75);  // it learns, and the same by all
  std::uint64_t most = 0, steps = 1;
  for (const WorkerReport& worker : course.value().workers) {
    most = std::max(most, worker.times.bytes_sent + worker.times.bytes_shared);
    steps = std::max(steps, worker.times.steps);
  }
  return most / steps;
}

TEST(Comparison, WhatARingOfColumnsSendsGrowsNeitherWithTheModelNorWithoutEndWithTheMembers) {
  std::uint64_t summed_before = 0, served_before = 0;  // by half as many
  for (const int workers : {2, 4, 8}) {
    SCOPED_TRACE(Str(workers, " workers"));
    const std::uint64_t narrow = BusiestBytes("ring", workers, 1000), wide = BusiestBytes("ring", workers, 20000);
    const std::uint64_t summed = BusiestBytes("allreduce", workers, 1000),
                        summed_wide = BusiestBytes("allreduce", workers, 20000);
    const std::uint64_t served = BusiestBytes("bsp", workers, 1000), served_wide = BusiestBytes("bsp", workers, 20000);
    EXPECT_EQ(narrow, wide);
    constexpr std::uint64_t kHead = 64;  // ours and the fabric's, of a message
    const auto n = static_cast<std::uint64_t>(workers);
    EXPECT_LE(wide, 2 * 256 * sizeof(float) + 2 * (n - 1) * kHead);
    EXPECT_GT(summed_wide, 3 * wide);
    EXPECT_GT(summed_wide, summed);
    EXPECT_GT(served_wide, 3 * wide);
    EXPECT_GT(served_wide, served);
    EXPECT_GT(summed_wide, summed_before);
    EXPECT_GT(served_wide, served_before);
    summed_before = summed_wide;
    served_before = served_wide;
  }
}

TEST(ServerReport, IsReadAsItWasWritten) {
  using strategy::server::Report;
  Report report{.waited_for = {0.5, 0, 1.25}, .updates = 7};
  report.blocks.push_back(
      {.name = "weights", .rows = 100, .held = 40, .pulled = 800, .pushed = 1u << 31, .range_rows = 20});
  report.blocks[0].hottest = {{5, 300}, {7, 200}};
  report.blocks[0].busiest = {{80, 100, 900}};
  const std::string text = ToJson(report).dump();
  const auto again = ServerReportFrom(text);
  ASSERT_TRUE(again.ok()) << again.error().text;
  EXPECT_EQ(ToJson(again.value()).dump(), text);
  EXPECT_EQ(again.value().blocks[0].hottest[1].row, 7u);
  EXPECT_EQ(again.value().blocks[0].held, 40u);
  for (std::size_t size = 0; size < text.size(); ++size) {
    const auto cut = ServerReportFrom(text.substr(0, size));
    ASSERT_FALSE(cut.ok());
    EXPECT_EQ(cut.error().code, Code::kCorrupt);
  }
  EXPECT_FALSE(ServerReportFrom("{}").ok());
}

}  // namespace
}  // namespace freshet::train
