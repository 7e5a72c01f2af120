#include "train/comparison.h"

#include <gtest/gtest.h>

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
