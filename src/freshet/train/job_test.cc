#include "train/job.h"

#include <thread>

#include "base/option.h"
#include "base/random.h"
#include "data/generate.h"
#include "data/table.h"
#include "data/world_testing.h"
#include "fabric/threads/threads_fabric.h"
#include "optimize/own_rule.h"

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
  for (const Outcome& outcome : MustRunAsProcesses(2, job_)) {
    EXPECT_EQ(outcome.workers.size(), 2u);
    EXPECT_EQ(Saved(outcome, "process.model"), model);
  }
}

// Rows of three numbers and a label as one process has them in memory.
std::shared_ptr<data::Table> TableOf(const std::vector<float>& numbers, const std::vector<std::int32_t>& labels) {
  const auto bytes = [](const auto& values) { return reinterpret_cast<const std::byte*>(values.data()); };
  std::shared_ptr<data::Table> table =
      data::DenseTable(labels.size(), {3}, {bytes(numbers), data::Numbers::Type::kF32, 4}, 3 * sizeof(float));
  table->labels = data::Table::Labels{{bytes(labels), data::Numbers::Type::kI32, 4}};
  return table;
}

TEST_F(JobTest, SharesInMemoryMakeTheModelOfSharesInFiles) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "shares");
    const int count = 2 + static_cast<int>(random.Below(3));
    const std::uint64_t classes = seed % 2 == 0 ? 2 : 3;
    std::vector<std::vector<float>> numbers(static_cast<std::size_t>(count));
    std::vector<std::vector<std::int32_t>> labels(static_cast<std::size_t>(count));
    for (std::size_t rank = 0; rank < numbers.size(); ++rank) {
      std::string text;
      for (std::uint64_t row = 0, rows = 1 + random.Below(800); row < rows; ++row) {
        for (int column = 0; column < 3; ++column) {
          numbers[rank].push_back(static_cast<float>(random.Below(1000)) / 8 + 40.0f * static_cast<float>(rank));
          text += Str(numbers[rank].back(), ",");
        }
        // Somebody never sees one of the classes.
        labels[rank].push_back(static_cast<std::int32_t>(random.Below(rank == 0 ? classes : classes - 1)));
        text += Str(labels[rank].back(), "\n");
      }
      if (rank == 0) {  // …and somebody does
        for (std::uint64_t label = 0; label < classes; ++label) {
          numbers[0].insert(numbers[0].end(), {1, 2, 3});
          labels[0].push_back(static_cast<std::int32_t>(label));
          text += Str("1,2,3,", label, "\n");
        }
      }
      world_.Write(Str("share-", rank, ".csv"), text);
    }
    job_.together.split = "own";
    job_.batch = seed % 3 == 0 ? 24 : 0;  // by averaging, too
    job_.epochs = 2;
    job_.input.paths = {world_.Path("share-{rank}.csv")};
    const std::vector<Outcome> files = MustRunAsProcesses(count, job_);
    const std::vector<Outcome> tables = MustRunAsProcesses(count, job_, [&](int rank, Job& job) {
      const auto at = static_cast<std::size_t>(rank);
      job.input.paths.clear();
      job.input.table = TableOf(numbers[at], labels[at]);
    });
    for (const Outcome& outcome : tables) {
      EXPECT_EQ(outcome.trained.parameters.Checksum(), files[0].trained.parameters.Checksum());
      EXPECT_EQ(outcome.trained.description.labels.names, files[0].trained.description.labels.names);
      EXPECT_EQ(outcome.report.rows, files[0].report.rows);
    }
  }
}

TEST_F(JobTest, RowsInMemoryAreNotThoseOfAllProcesses) {
  const std::vector<float> numbers = {1, 2, 3, 4, 5, 6};
  const std::vector<std::int32_t> labels = {0, 1};
  job_.input.paths.clear();
  job_.input.table = TableOf(numbers, labels);
  fabric::ThreadsGroup group(2, world_.env().clock, {});
  Around around;
  around.fabric = group.Take(0);
  const auto outcome = train::Run(world_.env(), memory_, job_, std::move(around));
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, Code::kInvalid);
  EXPECT_NE(outcome.error().text.find("rows in memory are there for one process alone"), std::string::npos)
      << outcome.error().text;
}

TEST_F(JobTest, LbfgsByWorkersOfOneProcessAndOfSeveralMakesTheSameModelAboutThatOfOneAlone) {
  job_.learning.optimizer = "lbfgs";
  job_.learning.l2 = 0.01;
  const Outcome alone = MustRun(job_);
  for (const std::string strategy : {"allreduce", "server"})
    for (const std::string split : {"rows", "bytes"}) {
      SCOPED_TRACE(Str(strategy, " ", split));
      Job job = job_;
      job.together.strategy.kind = strategy;
      job.together.split = split;
      Job inside = job;
      inside.together.workers = 3;
      const Outcome threads = MustRun(inside);
      EXPECT_EQ(threads.job.together.strategy.kind, strategy);
      EXPECT_EQ(threads.report.last_epoch.rows(), 2000u);
      EXPECT_NEAR(threads.report.last_epoch.loss(), alone.report.last_epoch.loss(), 1e-4);
      const std::string model = Saved(threads, "inside.model");
      std::uint64_t rows = 0;
      for (const WorkerReport& worker : threads.workers) {
        EXPECT_EQ(worker.times.steps, static_cast<std::uint64_t>(threads.report.epochs));
        EXPECT_GT(worker.times.bytes_sent + worker.times.bytes_shared, 0u);
        rows += worker.times.rows;
      }
      EXPECT_EQ(rows, threads.report.rows);
      for (const Outcome& outcome : MustRunAsProcesses(3, job)) EXPECT_EQ(Saved(outcome, "process.model"), model);
    }
}

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

TEST_F(JobTest, LbfgsByWorkersRefusesWhatItsStepsCannotBeMadeWith) {
  job_.learning.optimizer = "lbfgs";
  job_.together.workers = 2;
  const auto refused = [&](const std::string& why, const std::function<void(Job&)>& change) {
    Job job = job_;
    change(job);
    const std::string text = Refused(job);
    EXPECT_TRUE(text.starts_with(why)) << text << "\ninstead of\n" << why;
  };
  for (const std::string kind : {"average", "groups", "gossip", "auto"})
    refused(Str("optimizer lbfgs does not go with strategy ", kind, ": a step is made from the rows of all"),
            [&](Job& job) { job.together.strategy.kind = kind; });
  refused("optimizer lbfgs does not go with codec int8", [](Job& job) { job.together.strategy.codec = "int8"; });
  refused("optimizer lbfgs does not go with layer-factors", [](Job& job) { job.together.strategy.factors = true; });
  refused("optimizer lbfgs does not go with exact", [](Job& job) { job.together.strategy.exact = true; });
  refused("optimizer lbfgs does not go with backup", [](Job& job) { job.together.strategy.backup = 1; });
  const auto server = [](auto change) {
    return [change](Job& job) {
      job.together.strategy.kind = "server";
      change(job.together.strategy);
    };
  };
  refused("optimizer lbfgs does not go with synchrony ssp:3", server([](auto& how) { how.synchrony = "ssp:3"; }));
  refused("optimizer lbfgs does not go with servers 1", server([](auto& how) { how.servers = 1; }));
  refused("optimizer lbfgs does not go with cache", [&](Job& job) { job.cache = world_.Path("rows"); });
  refused("optimizer lbfgs goes with neither holdout", [](Job& job) { job.holdout = 0.1; });
  refused("optimizer lbfgs goes with neither holdout", [](Job& job) { job.batch = 64; });
  refused("elastic does not go with optimizer lbfgs", [](Job& job) {
    job.together.elastic = "1:2";
    job.together.workers = 0;
  });
}

TEST_F(JobTest, GossipOfWorkersThatComeAndGoRefusesWhatItCannotKeep) {
  const auto refused = [&](const std::string& why, const std::function<void(Together&)>& change) {
    Job job = job_;
    job.together.elastic = "1:3";
    job.together.strategy.kind = "gossip";
    change(job.together);
    const std::string text = Refused(job);
    EXPECT_TRUE(text.starts_with(why)) << text << "\ninstead of\n" << why;
  };
  refused("elastic does not go with lossy and gossip", [](Together& how) { how.strategy.lossy = true; });
  refused("elastic does not go with evict and strategy gossip", [](Together& how) { how.evict = 3; });
  refused("elastic does not go with split bytes", [](Together& how) { how.split = "bytes"; });
  refused("neighbours: there is no way from rank 0 to rank 2", [](Together& how) { how.strategy.neighbours = "0-1"; });
}

TEST_F(JobTest, PartsOfAModelWithWorkersThatComeAndGoRefuseWhatTheyCannotKeep) {
  const auto refused = [&](const std::string& why, const std::function<void(Together&)>& change) {
    Job job = job_;
    job.together.elastic = "1:3";
    job.together.strategy.kind = "ring";
    change(job.together);
    const std::string text = Refused(job);
    EXPECT_TRUE(text.starts_with(why)) << text << "\ninstead of\n" << why;
  };
  refused("elastic does not go with evict and strategy ring", [](Together& how) { how.evict = 3; });
  refused("elastic does not go with copy-every 0 and strategy ring", [](Together& how) { how.copy_every = 0; });
  refused("elastic does not go with large-model and strategy ring", [](Together& how) { how.strategy.large = true; });
  refused("elastic does not go with pipeline stash", [](Together& how) { how.strategy.pipeline = "stash"; });
  refused("elastic does not go with strategy slices", [](Together& how) { how.strategy.kind = "slices"; });
  job_.learning.model = "linear";
  refused("elastic does not go with balance of columns", [](Together& how) { how.strategy.balance = true; });
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

TEST_F(JobTest, WhatMakesNoSenseIsRefusedByTheNamesOfOptions) {
  Job job = job_;
  job.learning.factors = 0;
  job.holdout = 2;
  EXPECT_EQ(Refused(job),
            "factors: found '0', expected a whole number from 1 to 4096\n"
            "holdout: found '2', expected a number from 0 to 0.9");
  job = job_;
  job.together.workers = 4;
  job.batch = 3;
  EXPECT_TRUE(Refused(job).starts_with("batch 3 has no row for some of 4 workers")) << Refused(job);
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

// Descent by half of the rate; a program's own, which freshet does not know.
struct HalfSteps {
  static constexpr int kSlots = 0, kScaleSlot = -1;
  static constexpr bool kStepMatters = false;
  float rate = 0;
  explicit HalfSteps(const optimize::OptimizerOptions&) {}
  void OnStep(double now, std::uint64_t) { rate = static_cast<float>(now / 2); }
  template <class F>
  F Step(F w, F*, F x, F delta) const {
    return w - rate * (x * delta);
  }
};

TEST_F(JobTest, ARuleOfTheProgramsOwnIsOneLikeAnyOtherOnServersToo) {
  job_.learning.optimizer = "half-steps";
  job_.learning.rate = 0.02;
  EXPECT_NE(Refused(job_).find("half-steps"), std::string::npos);
  ASSERT_TRUE(optimize::RegisterRule<HalfSteps>("half-steps").ok());
  for (const std::string taken : {"half-steps", "sgd"})
    EXPECT_EQ(optimize::RegisterRule<HalfSteps>(taken).error().code, Code::kInvalid);
  Job plain = job_;
  plain.learning.optimizer = "sgd";
  plain.learning.rate = 0.01;
  for (const std::string strategy : {"", "server"}) {
    for (Job* job : {&job_, &plain}) {
      if (strategy.empty()) continue;
      job->together.workers = 2;
      job->batch = 8;
      job->together.strategy.kind = strategy;
    }
    const Outcome by_halves = MustRun(job_), by_wholes = MustRun(plain);
    const auto got = by_halves.trained.parameters.Gather(0), want = by_wholes.trained.parameters.Gather(0);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6) << strategy;
  }
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
