#include "train/belonging.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/option.h"
#include "train/job.h"

namespace freshet::train {
namespace {

Together Of(const std::string& strategy) {
  Together together;
  together.strategy.kind = strategy;
  return together;
}
std::string Refused(const Result<void>& result) {
  if (result.ok()) return "not refused";
  EXPECT_EQ(result.error().code, Code::kInvalid);
  return ShowOptions(result.error().text, "--");
}
std::string Refused(const Together& together) { return Refused(CheckBelonging({together}, together.strategy.kind)); }

TEST(Belonging, AnOptionThatTheStrategyDoesNotUseIsRefused) {
  Together together = Of("allreduce");
  together.strategy.synchrony = "ssp:3";
  EXPECT_EQ(Refused(together),
            "--synchrony goes with --strategy server or groups, not with allreduce; it would do nothing: leave it out");
  together.strategy.kind = "groups";
  EXPECT_EQ(Refused(together), "not refused");
  const std::pair<std::string, void (*)(Together&)> options[] = {
      {"servers", [](Together& t) { t.strategy.servers = 1; }},
      {"replicas", [](Together& t) { t.strategy.replicas = 3; }},
      {"slower-when-stale", [](Together& t) { t.strategy.slower_when_stale = true; }},
      {"fetch-every", [](Together& t) { t.strategy.fetch_every = 2; }},
      {"push-every", [](Together& t) { t.strategy.push_every = 2; }},
      {"every", [](Together& t) { t.strategy.every = 3; }},
      {"group", [](Together& t) { t.strategy.group = 3; }},
      {"gossip", [](Together& t) { t.strategy.gossip = "walk"; }},
      {"neighbours", [](Together& t) { t.strategy.neighbours = "ring"; }},
      {"slice-all", [](Together& t) { t.strategy.slice_all = true; }},
      {"order", [](Together& t) { t.descent.order = "random"; }},
      {"coordinates", [](Together& t) { t.descent.coordinates = 3; }},
      {"rho", [](Together& t) { t.descent.rho = 0.5; }},
      {"pipeline", [](Together& t) { t.strategy.pipeline = "flush"; }},
      {"micro", [](Together& t) { t.strategy.micro = 3; }},
      {"stages", [](Together& t) { t.strategy.stages = 2; }},
      {"balance", [](Together& t) { t.strategy.balance = true; }},
      {"recompute", [](Together& t) { t.strategy.recompute = true; }},
  };
  for (const auto& [option, change] : options)
    for (const char* const strategy : {"allreduce", "auto"}) {
      together = Of(strategy);
      change(together);
      EXPECT_TRUE(Refused(together).starts_with("--" + option + " goes with --strategy ")) << Refused(together);
      DropForeign(together);
      EXPECT_EQ(Refused(together), "not refused");
    }
  EXPECT_EQ(Refused(Of("ring")), "not refused");
}

TEST(Belonging, WhatElseItGoesWithHasToBeThere) {
  Together together = Of("server");
  together.strategy.slower_when_stale = true;
  for (const char* const bulk : {"", "bsp", "ssp:0"}) {
    together.strategy.synchrony = bulk;
    EXPECT_EQ(Refused(together),
              "--slower-when-stale goes with --synchrony ssp:S, asp:V or bap, not with server; it would do nothing: "
              "leave it out");
  }
  together.strategy.synchrony = "bap";
  EXPECT_EQ(Refused(together), "not refused");
  together.strategy.replicas = 3;
  EXPECT_TRUE(Refused(together).starts_with("--replicas goes with --elastic"));
  together.elastic = "2:3";
  EXPECT_EQ(Refused(together), "not refused");
  together = Of("groups");
  together.strategy.servers = 1;
  EXPECT_TRUE(Refused(together).starts_with("--servers goes with --synchrony")) << Refused(together);
}

TEST(Belonging, OfSeveralWaysOneHasToUseIt) {
  std::vector<Together> ways = {Of("allreduce"), Of("average")};
  for (Together& way : ways) way.strategy.every = 3;
  EXPECT_EQ(Refused(CheckBelonging(ways, "")), "not refused");
  ways.back().strategy.kind = "ring";
  EXPECT_TRUE(Refused(CheckBelonging(ways, "allreduce, ring"))
                  .ends_with("--strategy average, groups or gossip, not with allreduce, ring; it would do nothing: "
                             "leave it out"));
}

TEST(Belonging, AJobOfWhichNoStrategyIsSaidMayBecomeOneThatAverages) {
  base::PosixFiles files;
  Job job;
  job.together.strategy.every = 3;
  EXPECT_EQ(Refused(Check(files, job, 4)), "not refused");
  job.said = {"strategy"};
  EXPECT_TRUE(Refused(Check(files, job, 4)).starts_with("--every goes with")) << Refused(Check(files, job, 4));
}

TEST(Check, ThoseWhoAreNotWaitedForAreFewerThanThoseWhoMakeUpdates) {
  base::PosixFiles files;
  Job job;
  const auto checked = [&](const std::string& strategy, int backup, int servers, int workers) {
    job.together.strategy.kind = strategy;
    job.together.strategy.backup = backup;
    job.together.strategy.servers = servers;
    return Refused(Check(files, job, workers));
  };
  EXPECT_EQ(checked("allreduce", 3, 0, 4), "not refused");
  EXPECT_EQ(checked("allreduce", 4, 0, 4), "--backup 4 of 4 workers that make updates leaves none; give at most 3");
  EXPECT_EQ(checked("server", 3, 1, 4), "--backup 3 of 3 workers that make updates leaves none; give at most 2");
  EXPECT_EQ(checked("server", 2, 1, 4), "not refused");
  EXPECT_EQ(checked("allreduce", 1, 0, 1), "--backup 1 of one worker that makes updates; leave it out");
  job.together.elastic = "1:3";
  EXPECT_EQ(checked("allreduce", 2, 0, 1), "not refused");
}

}  // namespace
}  // namespace freshet::train
