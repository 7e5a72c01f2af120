// Jobs that descend along scheduled coordinates.

#include "train/job_testing.h"

namespace freshet::train {
namespace {

TEST_F(JobTest, ScheduledDescentMakesTheSameModelByAnyNumberOfWorkersAndTellsHowItDid) {
  job_.together.strategy.kind = "scheduled";
  job_.learning.l1 = 0.01;
  for (const bool sparse : {false, true}) {
    SCOPED_TRACE(sparse);
    Job alone = job_;
    if (sparse) {
      base::Random random(3, "rows");
      std::string text;
      for (int row = 0; row < 300; ++row) {
        text += Str(row % 2 == 0 ? 3 : -3, random.Below(10));
        for (std::uint32_t j = 0; j < 5; ++j) text += Str(" ", 1 + 20 * j + random.Below(row % 2 == 0 ? 20 : 12), ":1");
        text += "\n";
      }
      alone.input.paths = {world_.Write("rows.svm", text)};
      alone.learning.loss = "squared";
    }
    const Outcome one = MustRun(alone);
    ASSERT_TRUE(one.descent);
    EXPECT_EQ(one.job.learning.optimizer, "coordinates");
    EXPECT_EQ(one.report.rows, one.report.epochs * one.report.progressive.rows());
    EXPECT_LT(one.report.last_epoch.loss(), one.report.progressive.loss());
    EXPECT_GT(one.descent->updates, 0u);
    EXPECT_EQ(one.descent->coordinates, sparse ? 101u : 4u);
    EXPECT_EQ(one.descent->course.size(), 1 + 8 * static_cast<std::size_t>(one.report.epochs));
    EXPECT_EQ(one.descent->course.back().objective, one.descent->objective);
    const Evaluation judged = Evaluate(world_.env(), const_cast<Outcome&>(one), alone.input.paths).value();
    EXPECT_NEAR(judged.loss(), one.report.last_epoch.loss(), 1e-5 * judged.loss());
    Job inside = alone;
    inside.together.workers = 3;
    const Outcome threads = MustRun(inside);
    EXPECT_EQ(threads.trained.parameters.Checksum(), one.trained.parameters.Checksum());
    EXPECT_EQ(threads.descent->updates, one.descent->updates);
    ASSERT_EQ(threads.workers.size(), 3u);
    for (const WorkerReport& worker : threads.workers) {
      EXPECT_EQ(worker.times.steps, one.descent->rounds);
      EXPECT_GT(worker.times.bytes_sent + worker.times.bytes_shared, 0u);
    }
    for (const Outcome& outcome : MustRunAsProcesses(3, alone))
      EXPECT_EQ(outcome.trained.parameters.Checksum(), one.trained.parameters.Checksum());
  }
}

// Ratings to descend along the factors of.
Job RatingsJob(data::World& world, Job job) {
  base::StringFile file;
  CHECK(data::Generate({.kind = "ratings", .rows = 6000, .users = 150, .items = 90}, file).ok());
  job.input.paths = {world.Write("ratings.dat", file.text)};
  job.together.strategy.kind = "scheduled";
  job.learning.factors = 6;
  job.epochs = 5;
  return job;
}

TEST_F(JobTest, ScheduledDescentMakesTheSameFactorsByAnyNumberOfWorkersAndTellsHowItDid) {
  Job alone = RatingsJob(world_, job_);
  alone.holdout = 0.1;
  const Outcome one = MustRun(alone);
  EXPECT_EQ(one.job.learning.model, "factorization");
  EXPECT_EQ(one.job.learning.optimizer, "coordinates");
  ASSERT_TRUE(one.descent);
  EXPECT_EQ(one.descent->rounds % 7, 0u);
  EXPECT_EQ(one.descent->updates % 7, 0u);
  EXPECT_EQ(one.descent->course.size(), 1 + 8 * static_cast<std::size_t>(one.report.epochs));
  for (std::size_t i = 1; i < one.descent->course.size(); ++i)
    EXPECT_LE(one.descent->course[i].objective, one.descent->course[i - 1].objective);
  EXPECT_EQ(one.report.rows, one.report.epochs * one.report.progressive.rows());
  EXPECT_LT(one.report.last_epoch.loss(), 0.5 * one.report.progressive.loss());
  ASSERT_TRUE(one.report.held_out);
  EXPECT_EQ(one.report.held_out->rows() + one.report.progressive.rows(), 6000u);
  EXPECT_EQ(one.report.held_out_losses.size(), static_cast<std::size_t>(one.report.epochs));
  EXPECT_EQ(one.report.held_out_losses.back(), one.report.held_out->loss());
  EXPECT_EQ(one.trained.rated.pairs().size(), 6000u);
  const std::string model = Saved(one, "alone.model");
  for (const int workers : {2, 3, 4, 8}) {
    SCOPED_TRACE(workers);
    Job inside = alone;
    inside.together.workers = workers;
    const Outcome threads = MustRun(inside);
    EXPECT_EQ(Saved(threads, "inside.model"), model);
    EXPECT_EQ(threads.descent->updates, one.descent->updates);
    EXPECT_EQ(threads.descent->objective, one.descent->objective);
    EXPECT_EQ(threads.report.held_out->loss(), one.report.held_out->loss());
    EXPECT_EQ(threads.report.last_epoch.loss(), one.report.last_epoch.loss());
    ASSERT_EQ(threads.workers.size(), static_cast<std::size_t>(workers));
    for (const WorkerReport& worker : threads.workers) {
      EXPECT_EQ(worker.times.steps * 7, one.descent->rounds);
      EXPECT_GT(worker.times.bytes_sent + worker.times.bytes_shared, 0u);
    }
  }
  for (const Outcome& outcome : MustRunAsProcesses(3, alone)) EXPECT_EQ(Saved(outcome, "process.model"), model);
}

TEST_F(JobTest, ScheduledDescentAlongFactorsPredictsAboutAsWellAsSgd) {
  Job job = RatingsJob(world_, job_);
  job.epochs = 0;
  job.holdout = 0.2;
  const Outcome scheduled = MustRun(job);
  EXPECT_EQ(scheduled.job.learning.l2, 0.09);
  job.together.strategy.kind = "allreduce";
  const Outcome sgd = MustRun(job);
  EXPECT_LT(*scheduled.report.held_out->rmse(), 0.9 * *sgd.report.held_out->rmse_of_mean());
  EXPECT_LT(*scheduled.report.held_out->rmse(), 1.04 * *sgd.report.held_out->rmse());
}

TEST_F(JobTest, ScheduledDescentAlongFactorsGoesOnFromAModelAndKeepsTheBestEpochWithPatience) {
  Job job = RatingsJob(world_, job_);
  job.epochs = 4;
  const Outcome first = MustRun(job);
  Saved(first, "first.model");
  Job more = job;
  more.from = world_.Path("first.model");
  const Outcome second = MustRun(more);
  EXPECT_NEAR(second.descent->course.front().objective, first.descent->objective, 1e-9);
  EXPECT_LT(second.descent->objective, first.descent->objective);
  EXPECT_EQ(second.trained.rated.Pack(), first.trained.rated.Pack());

  job.holdout = 0.3;
  job.patience = 2;
  job.epochs = 60;
  job.learning.l2 = 0.001;
  for (const int workers : {0, 3}) {
    job.together.workers = workers;
    const Outcome outcome = MustRun(job);
    const std::vector<double>& losses = outcome.report.held_out_losses;
    EXPECT_TRUE(outcome.report.stopped_early);
    EXPECT_EQ(*std::min_element(losses.begin(), losses.end()), outcome.report.held_out->loss());
    EXPECT_LT(outcome.report.held_out->loss(), losses.back());
  }
}

TEST_F(JobTest, ScheduledDescentRefusesWhatItCannotDo) {
  job_.together.strategy.kind = "scheduled";
  const auto refused = [&](const std::string& why, const std::function<void(Job&)>& change) {
    Job job = job_;
    change(job);
    EXPECT_NE(Refused(job).find(why), std::string::npos) << Refused(job) << "\ninstead of\n" << why;
  };
  const std::string not_with = "strategy scheduled does not go with ";
  refused(not_with + "optimizer adam: weights are set", [](Job& job) { job.learning.optimizer = "adam"; });
  refused(not_with + "model mlp", [](Job& job) { job.learning.model = "mlp"; });
  refused(not_with + "loss hinge", [](Job& job) { job.learning.loss = "hinge"; });
  refused(not_with + "split bytes", [](Job& job) { job.together.split = "bytes"; });
  refused(not_with + "batch", [](Job& job) { job.batch = 8; });
  refused(not_with + "shuffle", [](Job& job) { job.shuffle = true; });
  refused(not_with + "holdout", [](Job& job) { job.holdout = 0.1; });
  refused(not_with + "checkpoint", [&](Job& job) { job.checkpoint = world_.Path("run.ckpt"); });
  refused(not_with + "cache", [&](Job& job) { job.cache = world_.Path("rows"); });
  refused(not_with + "keep-optimizer", [](Job& job) { job.keep_optimizer = true; });
  refused(not_with + "codec fp16", [](Job& job) { job.together.strategy.codec = "fp16"; });
  refused(not_with + "exact", [](Job& job) { job.together.strategy.exact = true; });
  refused(not_with + "backup", [](Job& job) { job.together.strategy.backup = 1; });
  refused("elastic does not go with strategy scheduled", [](Job& job) { job.together.elastic = "2:3"; });
  refused("at most 16 workers", [](Job& job) { job.together.workers = 17; });
  refused("optimizer coordinates is for strategy scheduled, not allreduce", [](Job& job) {
    job.together.strategy.kind = "allreduce";
    job.learning.optimizer = "coordinates";
  });
  Job classes = job_;
  classes.input.paths = {world_.Write("classes.csv", "x,kind\n1,a\n2,b\n3,c\n")};
  EXPECT_NE(Refused(classes).find("of squared or logistic loss, not for model linear of softmax loss"),
            std::string::npos)
      << Refused(classes);
  refused("goes with at most coordinates 4096", [](Job& job) { job.together.descent.coordinates = 4097; });
  refused("model factorization needs ratings", [](Job& job) { job.learning.model = "factorization"; });
  job_ = RatingsJob(world_, job_);
  refused(not_with + "l1 and model factorization", [](Job& job) { job.learning.l1 = 0.1; });
  refused(not_with + "rho and model factorization", [](Job& job) { job.together.descent.rho = 0.5; });
  refused(not_with + "checkpoint", [&](Job& job) { job.checkpoint = world_.Path("run.ckpt"); });
  refused("goes with loss squared only", [](Job& job) {
    job.learning.model = "factorization";
    job.learning.loss = "logistic";
  });
  refused("not for model factorization of logistic loss", [](Job& job) { job.learning.loss = "logistic"; });
  refused(not_with + "model fm", [](Job& job) { job.learning.model = "fm"; });
  refused("no rows are held out", [](Job& job) { job.holdout_after = 4'000'000'000; });
  refused("at most 16 workers", [](Job& job) { job.together.workers = 17; });
}

}  // namespace
}  // namespace freshet::train
