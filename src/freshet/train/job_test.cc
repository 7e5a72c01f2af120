#include "train/job.h"

#include "data/table.h"
#include "optimize/own_rule.h"
#include "train/job_testing.h"

namespace freshet::train {
namespace {

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
