// Jobs of which each worker has a part of the model: what they make is the model of one, or one is told why not.

#include "train/job_testing.h"

namespace freshet::train {
namespace {

TEST_F(JobTest, OnARingAllHaveTheModelOfOneWorkerAndTellWhatTheySent) {
  job_.learning.model = "mlp";
  job_.learning.optimizer = "sgd";
  job_.batch = 24;
  job_.epochs = 2;
  Job alone = job_;
  alone.together.strategy.accumulate = 4;
  const Outcome one = MustRun(alone);
  job_.together.strategy.kind = "ring";
  job_.together.strategy.micro = 4;
  Job inside = job_;
  inside.together.workers = 3;
  const Outcome threads = MustRun(inside);
  EXPECT_NEAR(threads.report.last_epoch.loss(), one.report.last_epoch.loss(), 1e-3 * one.report.last_epoch.loss());
  ASSERT_EQ(threads.workers.size(), 3u);
  for (const WorkerReport& worker : threads.workers) {
    EXPECT_EQ(worker.times.bytes_next > 0, worker.rank < 2);
    EXPECT_EQ(worker.times.bytes_back > 0, worker.rank > 0);
  }
  const std::string model = Saved(threads, "inside.model");
  for (const Outcome& outcome : MustRunAsProcesses(3, job_)) EXPECT_EQ(Saved(outcome, "process.model"), model);
}

TEST_F(JobTest, OnARingOfColumnsAllHaveTheModelOfOneWorker) {
  for (const std::string kind : {"linear", "kmeans", "fm"}) {
    SCOPED_TRACE(kind);
    Job alone = job_;
    alone.learning.model = kind;
    alone.learning.optimizer = "sgd";
    alone.learning.rate = 0.01;
    alone.batch = 24;
    alone.epochs = 2;
    alone.holdout = 0.2;
    if (kind == "fm") {
      base::Random random(3, "rows");
      std::string text;
      for (int row = 0; row < 1000; ++row) {
        text += row % 2 == 0 ? "+1" : "-1";
        for (std::uint32_t j = 0; j < 5; ++j) text += Str(" ", 1 + 50 * j + random.Below(row % 2 == 0 ? 50 : 30), ":1");
        text += "\n";
      }
      alone.input.paths = {world_.Write("rows.svm", text)};
    }
    const Outcome one = MustRun(alone);
    Job job = alone;
    job.together.strategy.kind = "ring";
    Job inside = job;
    inside.together.workers = 3;
    const Outcome threads = MustRun(inside);
    const Report &got = threads.report, &want = one.report;
    EXPECT_EQ(got.rows, want.rows);
    EXPECT_EQ(got.progressive.rows(), want.progressive.rows());
    EXPECT_NEAR(got.progressive.loss(), want.progressive.loss(), 1e-6 * want.progressive.loss());
    EXPECT_NEAR(got.held_out->loss(), want.held_out->loss(), 1e-5 * want.held_out->loss());
    ASSERT_EQ(threads.workers.size(), 3u);
    for (const WorkerReport& worker : threads.workers) {
      EXPECT_GT(worker.times.bytes_next, 0u);
      EXPECT_EQ(worker.times.bytes_back, 0u);
    }
    const std::string model = Saved(threads, "inside.model");
    for (const Outcome& outcome : MustRunAsProcesses(3, job)) EXPECT_EQ(Saved(outcome, "process.model"), model);
  }
}

// Updates are of the same rows as by all-reduce, where each reads a part, too.
TEST_F(JobTest, OnARingOfColumnsEachMayReadAPartAndHandOnWhatOthersNeed) {
  base::Random random(4, "rows");
  std::string text;
  for (int row = 0; row < 1001; ++row) {
    text += row % 2 == 0 ? "+1" : "-1";
    for (std::uint32_t j = 0; j < 5; ++j) text += Str(" ", 1 + 50 * j + random.Below(row % 2 == 0 ? 50 : 30), ":1");
    text += "\n";
  }
  const std::string sparse = world_.Write("rows.svm", text);
  for (const std::string kind : {"linear", "table", "fm", "kmeans"}) {
    SCOPED_TRACE(kind);
    Job job = job_;
    job.learning.model = kind == "table" ? "linear" : kind;
    if (kind == "linear" || kind == "fm") job.input.paths = {sparse};
    if (kind == "fm") {
      job.learning.optimizer = "sgd";
      job.learning.rate = 0.01;
    }
    job.batch = 24;
    job.epochs = 2;
    job.holdout = 0.2;
    job.shuffle = kind == "table";
    job.together.split = "bytes";
    Job summed = job;
    summed.together.strategy.kind = "allreduce";
    summed.together.workers = 3;
    job.together.strategy.kind = "ring";
    Job inside = job;
    inside.together.workers = 3;
    const Outcome threads = MustRun(inside);
    const Report& got = threads.report;
    std::uint64_t rows = 0;
    ASSERT_EQ(threads.workers.size(), 3u);
    for (const WorkerReport& worker : threads.workers) {
      EXPECT_GT(worker.times.bytes_next, 0u);
      EXPECT_GT(worker.times.bytes_handed, 0u);
      EXPECT_EQ(worker.times.bytes_back, 0u);
      rows += worker.times.rows;
    }
    EXPECT_EQ(rows, got.rows);
    const std::string model = Saved(threads, "inside.model");
    for (const Outcome& outcome : MustRunAsProcesses(3, job)) EXPECT_EQ(Saved(outcome, "process.model"), model);
    if (kind == "kmeans") continue;  // all-reduce places centroids by rows of which some are not its own yet
    const Report want = MustRun(summed).report;
    EXPECT_EQ(got.rows, want.rows);
    EXPECT_EQ(got.progressive.rows(), want.progressive.rows());
    EXPECT_NEAR(got.progressive.loss(), want.progressive.loss(), 1e-6 * want.progressive.loss());
    EXPECT_NEAR(got.held_out->loss(), want.held_out->loss(), 1e-5 * want.held_out->loss());
  }
}

TEST_F(JobTest, OnARingOfItemsAllHaveTheModelOfOneWorkerAndTellWhatWeightsTheySent) {
  base::StringFile file;
  ASSERT_TRUE(data::Generate({.kind = "ratings", .rows = 1500, .users = 100, .items = 60}, file).ok());
  Job alone = job_;
  alone.input.paths = {world_.Write("ratings.dat", file.text)};
  alone.epochs = 3;
  alone.holdout = 0.2;
  const Outcome one = MustRun(alone);
  Job job = alone;
  job.together.strategy.kind = "ring";
  Job inside = job;
  inside.together.workers = 3;
  const Outcome threads = MustRun(inside);
  EXPECT_EQ(threads.job.batch, 1u);
  EXPECT_EQ(threads.trained.parameters.Checksum(), one.trained.parameters.Checksum());
  EXPECT_EQ(threads.report.rows, one.report.rows);
  EXPECT_EQ(threads.report.held_out->loss(), one.report.held_out->loss());
  EXPECT_EQ(threads.trained.rated.Pack(), one.trained.rated.Pack());
  ASSERT_EQ(threads.workers.size(), 3u);
  for (const WorkerReport& worker : threads.workers) {
    EXPECT_GT(worker.times.bytes_moved, 0u);
    EXPECT_EQ(worker.times.bytes_next + worker.times.bytes_back, 0u);
  }
  const std::string model = Saved(threads, "inside.model");
  for (const Outcome& outcome : MustRunAsProcesses(3, job)) EXPECT_EQ(Saved(outcome, "process.model"), model);
  inside.batch = 32;
  EXPECT_NE(Refused(inside).find("batch 32 does not go with"), std::string::npos) << Refused(inside);
}

TEST_F(JobTest, ARingOfColumnsRefusesWhatItCannotDo) {
  job_.together.strategy.kind = "ring";
  job_.together.workers = 3;
  job_.batch = 24;
  const auto refused = [&](const std::string& why, const std::function<void(Job&)>& change) {
    Job job = job_;
    change(job);
    EXPECT_NE(Refused(job).find(why), std::string::npos) << Refused(job) << "\ninstead of\n" << why;
  };
  refused("micro 4 is for networks", [](Job& job) { job.together.strategy.micro = 4; });
  refused("stages 2 is for networks", [](Job& job) { job.together.strategy.stages = 2; });
  refused("pipeline flush is for networks", [](Job& job) { job.together.strategy.pipeline = "flush"; });
  refused("accumulate 2 is for networks", [](Job& job) { job.together.strategy.accumulate = 2; });
  refused("strategy ring does not go with codec fp16", [](Job& job) { job.together.strategy.codec = "fp16"; });
  refused(
      "elastic does not go with split bytes and strategy ring: nobody else has the rows of who is lost; use split "
      "rows",
      [](Job& job) {
        job.together.workers = 0;
        job.together.elastic = "2:3";
        job.together.split = "bytes";
      });
  refused("part and split bytes both say which part a worker reads", [](Job& job) {
    job.together.split = "bytes";
    job.input.part = "1/3";
  });
  refused("batch 2 has no row for some of 3 workers", [](Job& job) { job.batch = 2; });
}

TEST_F(JobTest, ARingRefusesWhatItCannotDo) {
  job_.learning.model = "mlp";
  job_.together.strategy.kind = "ring";
  job_.together.workers = 3;
  const auto refused = [&](const std::string& why, const std::function<void(Job&)>& change) {
    Job job = job_;
    change(job);
    EXPECT_NE(Refused(job).find(why), std::string::npos) << Refused(job) << "\ninstead of\n" << why;
  };
  refused("a network of 3 layers cannot be cut into 4 stages", [](Job& job) { job.together.workers = 4; });
  refused("3 layers cannot be cut into 6 stages, 2 for each of 3 members of a ring; use fewer workers or stages 1",
          [](Job& job) { job.together.strategy.pipeline = "interleaved"; });
  refused("stages 2 is for pipeline interleaved or flush", [](Job& job) { job.together.strategy.stages = 2; });
  refused("pipeline interleaved is for stages 2 or more", [](Job& job) {
    job.together.strategy.pipeline = "interleaved";
    job.together.strategy.stages = 1;
  });
  refused("micro 40 micro-batches of batch 32", [](Job& job) { job.together.strategy.micro = 40; });
  refused("use micro 4", [](Job& job) { job.together.strategy.accumulate = 4; });
  refused("strategy ring does not go with codec topk", [](Job& job) { job.together.strategy.codec = "topk"; });
  refused("strategy ring does not go with layer-factors", [](Job& job) { job.together.strategy.factors = true; });
  refused(
      "strategy ring does not go with split bytes and model mlp: a row passes all workers, who must all have it; use "
      "split rows",
      [](Job& job) { job.together.split = "bytes"; });
  refused("exact is for strategy allreduce", [](Job& job) { job.together.strategy.exact = true; });
}

TEST_F(JobTest, WorkersWithoutMemoryForTheModelMakeTheSameOne) {
  std::string rows;
  for (int r = 0; r < 900; ++r)
    rows += Str(r % 2, " ", r % 7 + 1, ":1 ", r % 2 * 10 + r % 5 + 20, ":0.5 ", 1000 + r * 37, ":0.25\n");
  job_.input.paths = {world_.Write("rows.svm", rows)};
  job_.learning.model = "fm";
  job_.learning.factors = 4;
  job_.together.workers = 3;
  job_.together.strategy.kind = "server";
  job_.batch = 24;
  job_.epochs = 3;
  job_.holdout = 0.1;
  job_.scratch = world_.Path("");
  for (const std::string synchrony : {"bsp", "ssp:0"}) {
    job_.together.strategy.synchrony = synchrony;
    job_.together.strategy.large = false;
    const Outcome all = MustRun(job_);
    job_.together.strategy.large = true;
    const Outcome large = MustRun(job_);
    EXPECT_EQ(Saved(all, "all.model"), Saved(large, "large.model"));
    EXPECT_EQ(all.report.held_out->loss(), large.report.held_out->loss());
  }
  // And goes on from a checkpoint.
  const std::string whole = Saved(MustRun(job_), "whole.model");
  job_.checkpoint = world_.Path("large.ck");
  std::atomic<bool> stop = false;
  Around around;
  around.stop = &stop;
  around.progress = [&](const Progress& progress) { stop = progress.epoch == 1; };
  const auto stopped = train::Run(world_.env(), memory_, job_, std::move(around));
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, Code::kStopped) << stopped.error().text;
  EXPECT_EQ(Saved(MustRun(job_), "resumed.model"), whole);
}

TEST_F(JobTest, AModelThatIsTooLargeForMemoryIsRefusedWhatNeedsAllOfIt) {
  job_.together.workers = 2;
  job_.together.strategy.large = true;
  EXPECT_NE(
      Refused(job_).find("large-model is for strategy server, ring and modules, whose members each have a part of the "
                         "model, not for allreduce"),
      std::string::npos)
      << Refused(job_);
  job_.together.strategy.kind = "server";
  job_.patience = 2;
  EXPECT_NE(Refused(job_).find("patience"), std::string::npos) << Refused(job_);
  job_.patience = 0;
  job_.learning.optimizer = "lbfgs";
  EXPECT_NE(Refused(job_).find("lbfgs"), std::string::npos) << Refused(job_);
}

}  // namespace
}  // namespace freshet::train
