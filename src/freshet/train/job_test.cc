#include "train/job.h"

#include <thread>

#include "base/option.h"
#include "data/generate.h"
#include "data/world_testing.h"
#include "fabric/threads/threads_fabric.h"

namespace freshet::train {
namespace {

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

TEST_F(JobTest, TrainsEvaluatesAndSavesWithNothingSaidButTheInput) {
  Outcome outcome = MustRun(job_);
  EXPECT_EQ(outcome.job.learning.model, "linear");
  EXPECT_EQ(outcome.job.learning.loss, "logistic");
  EXPECT_EQ(outcome.job.learning.optimizer, "adagrad");
  EXPECT_EQ(outcome.job.epochs, 1);
  EXPECT_EQ(outcome.job.batch, 1u);
  EXPECT_EQ(outcome.report.progressive.rows(), 2000u);
  const auto judged = Evaluate(world_.env(), outcome, job_.input.paths);
  ASSERT_TRUE(judged.ok()) << judged.error().text;
  EXPECT_LT(judged.value().error_rate().value(), 0.2);
  ASSERT_TRUE(Save(world_.posix, outcome, world_.Path("sea.model")).ok());
  const auto loaded = model::LoadModel(world_.posix, world_.Path("sea.model"), memory_);
  ASSERT_TRUE(loaded.ok()) << loaded.error().text;
  EXPECT_EQ(loaded.value().parameters.Checksum(), outcome.trained.parameters.Checksum());
  EXPECT_EQ(loaded.value().metadata.at("rows"), "2000");
}

TEST_F(JobTest, TheJobThatIsHandedInStaysAsItIs) {
  const std::string before = job_.Lines();
  EXPECT_EQ(Saved(MustRun(job_), "one.model"), Saved(MustRun(job_), "two.model"));
  EXPECT_EQ(job_.Lines(), before);
}

TEST_F(JobTest, WorkersOfOneProcessAndOfSeveralMakeTheSameModel) {
  job_.batch = 200;
  Job inside = job_;
  inside.together.workers = 2;
  const std::string model = Saved(MustRun(inside), "inside.model");
  fabric::ThreadsGroup group(2, world_.env().clock, {});
  std::vector<std::string> models(2);
  {
    std::vector<std::jthread> processes;
    for (int rank = 0; rank < 2; ++rank)
      processes.emplace_back([&, rank] {
        Around around;
        around.fabric = group.Take(rank);
        base::ThreadPool pool(1);
        const base::Env env = world_.env();
        const base::Env own{env.files, env.clock, env.log, pool, env.faults};
        optimize::HeapMemory memory;
        const auto outcome = train::Run(own, memory, job_, std::move(around));
        ASSERT_TRUE(outcome.ok()) << outcome.error().text;
        EXPECT_EQ(outcome.value().workers.size(), 2u);
        models[static_cast<std::size_t>(rank)] = Saved(outcome.value(), Str(rank, ".model"));
      });
  }
  EXPECT_EQ(models[0], model);
  EXPECT_EQ(models[1], model);
}

TEST_F(JobTest, WorkersThatLearnRowByRowTakeTheMeanUnlessSomethingIsSaidOfGradients) {
  job_.together.workers = 2;
  EXPECT_EQ(MustRun(job_).job.together.strategy.kind, "average");
  Job said = job_;
  said.said = {"codec"};  // as it was before, but given
  EXPECT_EQ(MustRun(said).job.together.strategy.kind, "allreduce");
  Job accumulated = job_;
  accumulated.together.strategy.accumulate = 2;
  EXPECT_EQ(MustRun(accumulated).job.together.strategy.kind, "allreduce");
}

TEST_F(JobTest, WhatMakesNoSenseIsRefusedByTheNamesOfOptions) {
  Job job = job_;
  job.learning.factors = 0;
  job.holdout = 2;
  EXPECT_EQ(Refused(job),
            "factors: found '0', expected a whole number from 0 up from 1 to 4096\n"
            "holdout: found '2', expected a number from 0 to 0.9");
  job = job_;
  job.together.workers = 4;
  job.batch = 3;
  EXPECT_TRUE(Refused(job).starts_with("batch 3 has no row for some of 4 workers")) << Refused(job);
  job = job_;
  job.together.workers = 2;
  job.learning.optimizer = "lbfgs";
  EXPECT_EQ(Refused(job), "workers does not go with optimizer lbfgs");
  job = job_;
  job.learning.model = "fm";
  job.learning.loss = "softmax";
  EXPECT_EQ(Refused(job), "model fm goes with logistic, hinge or squared loss");
}

TEST_F(JobTest, AStoppedRunGoesOnFromItsCheckpointWithTheSameSettingsAlone) {
  job_.epochs = 3;
  const std::string whole = Saved(MustRun(job_), "whole.model");
  job_.checkpoint = world_.Path("run.ckpt");
  std::atomic<bool> stop = false;
  Around around;
  around.stop = &stop;
  around.progress = [&](const Progress& progress) { stop = progress.epoch == 1; };
  const auto stopped = train::Run(world_.env(), memory_, job_, std::move(around));
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, Code::kStopped);
  Job other = job_;
  other.learning.rate = 0.3;
  EXPECT_NE(train::Run(world_.env(), memory_, other).error().text.find("other settings"), std::string::npos);
  EXPECT_EQ(Saved(MustRun(job_), "resumed.model"), whole);
}

TEST_F(JobTest, WhoeverWantsToKnowIsToldOfTheInputAndOfProgress) {
  std::string format;
  std::uint64_t rows = 0;
  Around around;
  around.opened = [&](const data::Description& description) { format = description.format; };
  around.progress = [&](const Progress& progress) { rows = progress.rows; };
  MustRun(job_, std::move(around));
  EXPECT_EQ(format, "csv");
  EXPECT_EQ(rows, 2000u);
}

}  // namespace
}  // namespace freshet::train
