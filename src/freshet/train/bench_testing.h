#pragma once

#include <gtest/gtest.h>
#include <cstdlib>

#include <atomic>

#include "base/faulty_files.h"
#include "base/scratch_testing.h"
#include "base/simulated_clock.h"
#include "base/thread_pool.h"
#include "data/generate.h"
#include "data/reader.h"
#include "data/standardise.h"
#include "fabric/collectives/collectives.h"
#include "model/model_file.h"
#include "model/network/network.h"
#include "strategy/strategy.h"
#include "strategy/watched_testing.h"
#include "train/lbfgs_trainer.h"
#include "train/survey.h"
#include "train/trainer.h"

namespace freshet::train {

// What tests of training share: everything a run needs, from a file of rows to a trained model.
struct Plan {
  std::string path;  // rows of text
  data::InputOptions input;
  model::ModelConfig model;  // dense, features and classes follow from the data
  optimize::OptimizerOptions optimizer;
  TrainOptions train;
  std::size_t chunk_bytes = 1000;
  int threads = 1;
  int stop_at = 0;  // set the stop flag when progress is told the nth time; 0: never
  bool by_lbfgs = false;
  strategy::StrategyOptions strategy;                                           // of several workers
  std::function<strategy::StrategyPtr(const strategy::Learner&)> own_strategy;  // or one that is made here
  bool clock_runs = false;          // by a second with every look, so that progress is told after every update
  std::function<void()> computing;  // called before every gradient, but of networks
  std::function<void(const data::Batch& rows)> learning = {};  // likewise
  std::function<strategy::server::Panel*(int rank)> panel;     // of a worker of a parameter server
  bool scale_target = true;
  std::uint64_t parts = 0;  // of the input, each of which has one reader at a time; 0: workers are not made so
};

class RunningClock final : public base::Clock {
 public:
  Duration Now() const override {
    const Duration second = std::chrono::seconds(1);
    return Duration(now_.fetch_add(second.count()) + second.count());
  }
  Duration Wall() const override { return Now(); }
  void Sleep(Duration duration) override { now_ += duration.count(); }

 private:
  mutable std::atomic<Duration::rep> now_{0};  // servers of parameters look, too, from threads of their own
};

// How a run ended: everything that must be the same for two runs to be called the same.
struct BenchOutcome {
  std::optional<Error> error;
  std::optional<Report> report;
  std::vector<std::vector<float>> weights;
  std::string description;
  std::string rated;  // packed, of a factorization that was trained alone
  int told = 0;       // times that progress was told

  bool ok() const { return !error.has_value(); }
  Code code() const { return error->code; }
};

class Bench {
 public:
  base::ScratchDirectory scratch;
  base::PosixFiles files;
  base::ManualClock clock;
  base::Faults faults;

  // Rows of a generator in a file of their own; returns its path.
  std::string Generate(data::GenerateOptions options, const std::string& name = "rows") {
    const std::string path = scratch / name;
    EXPECT_TRUE(
        base::WriteAtomic(files, path, [&](base::OutputFile& file) { return data::Generate(options, file); }).ok());
    return path;
  }

  BenchOutcome Run(const Plan& plan) { return Run(plan, files); }

  BenchOutcome Run(const Plan& plan, base::Files& through) {
    BenchOutcome outcome;
    auto result = TryRun(plan, through, outcome, nullptr);
    if (!result.ok()) outcome.error = result.error();
    return outcome;
  }

  // The same by the strategy that the plan makes, with files and a clock of its own.
  BenchOutcome RunBy(const Plan& plan, base::Files& through, base::Clock& hands) {
    BenchOutcome outcome;
    if (auto result = TryRun(plan, through, outcome, nullptr, &hands); !result.ok()) outcome.error = result.error();
    return outcome;
  }
  // The same as one of several workers, perhaps with files and a clock of its own. Rank 0 alone is told how it goes, and
  // told to stop by plan.stop_at.
  BenchOutcome RunAs(fabric::Fabric& fabric, const Plan& plan) { return RunAs(fabric, plan, files, nullptr); }
  BenchOutcome RunAs(fabric::Fabric& fabric, const Plan& plan, base::Files& through, base::Clock* hands) {
    BenchOutcome outcome;
    fabric::Collectives collectives(fabric);
    auto result = TryRun(plan, through, outcome, &collectives, hands);
    if (!result.ok()) {
      outcome.error = result.error();
      if (result.error().code != Code::kStopped) fabric.Abort(result.error());  // who was told to stop ends nobody
    }
    return outcome;
  }

 private:
  Result<void> TryRun(const Plan& plan, base::Files& through, BenchOutcome& outcome, fabric::Collectives* collectives,
                      base::Clock* own_hands = nullptr) {
    base::Log log(clock, [](std::string_view) {});
    base::ThreadPool pool(plan.threads, own_hands);
    RunningClock running;
    base::Clock& hands = own_hands != nullptr ? *own_hands
                         : plan.clock_runs    ? static_cast<base::Clock&>(running)
                                              : clock;
    const base::Env env{through, hands, log, pool, faults};
    optimize::HeapMemory memory;
    data::Description description;
    data::ReaderOptions reading;
    reading.paths = {plan.path};
    reading.chunk_bytes = plan.chunk_bytes;
    reading.labelled = plan.model.kind != "kmeans";
    if (collectives != nullptr && !plan.strategy.whole)
      reading.part = {static_cast<std::uint64_t>(collectives->fabric().rank()),
                      static_cast<std::uint64_t>(collectives->fabric().size())};
    const auto source = TRY(data::Reader::Open(env, reading, plan.input, description));
    model::ModelConfig config = plan.model;
    config.dense = description.dense;
    if (description.dense) config.features = description.features;
    if (config.loss == "softmax") config.classes = description.labels.names.size();
    const auto made = TRY(model::Model::Make(config));
    const strategy::Watched watched(*made, [&](const data::Batch& batch) {
      if (plan.learning) plan.learning(batch);
      plan.computing();
    });
    const bool watches = plan.computing && model::network::GraphOf(*made) == nullptr;  // whose layers others run
    const model::Model* const model = watches ? static_cast<const model::Model*>(&watched) : made.get();
    if (plan.scale_target && model->WantsScaledLabels()) description.target = TRY(data::EstimateTarget(*source));
    const auto optimizer = TRY(optimize::Optimizer::Make(plan.optimizer, memory));
    auto parameters =
        TRY(model->NewParameters(memory, collectives == nullptr && !plan.own_strategy ? optimizer->slots() : 0));
    TRY(optimizer->Follow(parameters));
    std::atomic<bool> stop{false};
    TrainOptions options = plan.train;
    options.scratch_directory = scratch.path();
    options.stop = &stop;
    strategy::StrategyPtr strategy;
    strategy::FullBatch full_batch({.in_ranges = plan.strategy.kind == "server", .whole = plan.strategy.whole},
                                   {collectives, hands});
    if (collectives != nullptr && plan.by_lbfgs && !plan.strategy.whole) {
      TRY(SurveyTogether(env, *collectives, RowsOf::kOneInput, *source, description, stop));
      options.learn_moments = false;
    }
    if (collectives != nullptr && !plan.by_lbfgs) {
      strategy::StrategyOptions how = plan.strategy;
      how.batch = plan.train.batch;
      strategy::Strategy::World world{*collectives, *model, parameters, *optimizer, memory, hands};
      if (plan.panel) world.panel = plan.panel(collectives->fabric().rank());
      strategy = TRY(strategy::Strategy::Make(how, world));
      options.strategy = strategy.get();
    }
    if (plan.own_strategy) {
      strategy = plan.own_strategy({*model, parameters, *optimizer, memory, hands});
      options.strategy = strategy.get();
    }
    const bool told = collectives == nullptr || collectives->fabric().rank() == 0;
    options.progress = [&](const Progress& progress) {
      if (told && ++outcome.told == plan.stop_at) stop = true;
      if (plan.train.progress) plan.train.progress(progress);
    };
    model::Rated rated;
    if (model->ratings() != nullptr && collectives == nullptr) options.rated = &rated;
    std::unique_ptr<data::LeasedParts> leases;
    if (plan.parts > 0)
      leases =
          TRY(data::LeasedParts::Make(plan.parts, [&](std::uint64_t part) -> Result<std::unique_ptr<data::RowSource>> {
            data::ReaderOptions one = reading;
            one.part = {part, plan.parts};
            return std::unique_ptr<data::RowSource>(TRY(data::Reader::Open(env, one, plan.input, description)));
          }));
    options.leases = leases.get();
    if (leases != nullptr && description.standardise) {  // no reader sees all rows
      TRY(data::DriveInOrder(pool, *source, [&](data::Rows& block) -> Result<void> {
        data::Standardise(description.moments, block);
        return {};
      }));
      options.learn_moments = false;
    }
    data::RowSource& rows = leases != nullptr ? static_cast<data::RowSource&>(*leases) : *source;
    auto report = plan.by_lbfgs
                      ? TrainByLbfgs(env, options, *model, parameters, description, rows, plan.optimizer.l2, full_batch)
                      : Trainer(env, options, *model, parameters, *optimizer, description).Run(rows);
    for (std::size_t b = 0; b < parameters.blocks(); ++b) outcome.weights.push_back(parameters.Gather(b));
    outcome.rated = rated.Pack();
    outcome.description = description.ToJson();
    for (const auto& dictionary : description.dictionaries) outcome.description += dictionary.Serialize();
    const std::vector<double> moments = description.moments.Save();
    outcome.description.append(reinterpret_cast<const char*>(moments.data()), moments.size() * sizeof(double));
    outcome.report = TRY(std::move(report));
    return {};
  }
};

// A number that a variable of the environment gives.
inline std::uint64_t NumberIn(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// A short run that is saved often, for workers of simulated worlds.
inline Plan PlanForWorlds(Bench& bench) {
  Plan plan;
  plan.path = bench.Generate({.kind = "sea", .rows = 480}, "sea");
  plan.optimizer.kind = "adagrad";
  plan.optimizer.schedule = {"linear", 0.15};
  plan.train.batch = 8;
  plan.train.epochs = 2;
  plan.train.checkpoint_path = bench.scratch / "run.ckpt";
  plan.train.checkpoint_seconds = 0.02;  // simulated ones
  return plan;
}

// Bit for bit: weights, description, and what the report says of losses.
inline void ExpectSame(const BenchOutcome& got, const BenchOutcome& want) {
  ASSERT_TRUE(got.ok()) << got.error->text;
  ASSERT_TRUE(want.ok()) << want.error->text;
  EXPECT_EQ(got.weights, want.weights);
  EXPECT_EQ(got.description, want.description);
  EXPECT_EQ(got.report->epochs, want.report->epochs);
  EXPECT_EQ(got.report->rows, want.report->rows);
  EXPECT_EQ(got.report->stopped_early, want.report->stopped_early);
  EXPECT_EQ(got.report->progressive.Save(), want.report->progressive.Save());
  EXPECT_EQ(got.report->held_out_losses, want.report->held_out_losses);
  const auto held_out = [](const BenchOutcome& outcome) {
    return outcome.report->held_out.value_or(Evaluation()).Save();
  };
  EXPECT_EQ(held_out(got), held_out(want));
}

}  // namespace freshet::train
