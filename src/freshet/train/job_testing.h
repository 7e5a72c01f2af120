#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/option.h"
#include "base/random.h"
#include "data/generate.h"
#include "data/world_testing.h"
#include "fabric/threads/threads_fabric.h"
#include "train/job.h"

namespace freshet::train {

// A world with rows of two classes to learn from.
class JobTest : public testing::Test {
 protected:
  void SetUp() override {
    base::StringFile file;
    ASSERT_TRUE(data::Generate({.kind = "sea", .rows = 2000}, file).ok());
    job_.input.paths = {world_.Write("sea.csv", file.text)};
  }
  Outcome MustRun(const Job& job, Around around = {}) {
    auto outcome = train::Run(world_.env(), memory_, job, std::move(around));
    EXPECT_TRUE(outcome.ok()) << outcome.error().text;
    return std::move(outcome).value();
  }
  // The same job by as many processes, as far as they know; by rank. Each may be given rows of its own.
  std::vector<Outcome> MustRunAsProcesses(int count, const Job& job,
                                          const std::function<void(int rank, Job& job)>& change = {}) {
    fabric::ThreadsGroup group(count, world_.env().clock, {});
    std::vector<std::optional<Result<Outcome>>> results(static_cast<std::size_t>(count));
    {
      std::vector<std::jthread> processes;
      for (int rank = 0; rank < count; ++rank)
        processes.emplace_back([&, rank] {
          Around around;
          around.fabric = group.Take(rank);
          base::ThreadPool pool(1);
          const base::Env env = world_.env();
          const base::Env own{env.files, env.clock, env.log, pool, env.faults};
          Job mine = job;
          if (change) change(rank, mine);
          results[static_cast<std::size_t>(rank)] = train::Run(own, memory_, std::move(mine), std::move(around));
        });
    }
    std::vector<Outcome> outcomes;
    for (auto& result : results) {
      EXPECT_TRUE(result->ok()) << result->error().text;
      outcomes.push_back(std::move(*result).value());
    }
    return outcomes;
  }
  std::string Saved(const Outcome& outcome, const std::string& name) {
    EXPECT_TRUE(Save(world_.posix, outcome, world_.Path(name)).ok());
    return world_.Read(world_.Path(name));
  }
  std::string Refused(const Job& job) {
    const auto outcome = train::Run(world_.env(), memory_, job);
    if (outcome.ok()) return "not refused";
    EXPECT_EQ(outcome.error().code, Code::kInvalid) << outcome.error().text;
    return ShowOptions(outcome.error().text);
  }

  data::World world_{2};
  optimize::HeapMemory memory_;
  Job job_;
};

}  // namespace freshet::train
