#include <cstring>

#include "base/thread.h"
#include "base/thread_pool.h"
#include "fabric/threads/threads_fabric.h"
#include "model/network/network.h"
#include "train/job_parts.h"
#include "train/lbfgs_trainer.h"
#include "train/survey.h"

namespace freshet::train {
namespace {

const std::atomic<bool> kNeverStops{false};

TrainOptions OptionsOf(const Start& start, const model::Model& model) {
  const Job& job = start.job;
  TrainOptions options;
  options.epochs = job.epochs;
  options.batch = start.batch;
  options.accumulate = job.together.strategy.accumulate;
  options.deterministic = job.deterministic;
  options.shuffle = job.shuffle;
  if (model.traits().uses_team) options.shuffle_window_bytes = 64 << 20;
  options.mirror = job.input.mirror;
  options.prefetch = job.prefetch;
  options.seed = job.learning.seed;
  options.hold_out = {job.holdout, job.holdout_after, job.learning.seed};
  options.patience = job.patience;
  options.cache_path = job.cache;
  options.scratch_directory = job.scratch;
  options.checkpoint_path = job.checkpoint;
  options.checkpoint_seconds = job.checkpoint_seconds;
  options.fingerprint = start.fingerprint;
  options.inputs = start.inputs;
  options.stop = start.around.stop;
  return options;
}

Result<std::uint64_t> SumOver(fabric::Collectives& collectives, std::uint64_t mine) {
  std::uint64_t sum = 0;
  for (const auto& block : TRY(collectives.Gather(std::as_bytes(std::span(&mine, 1))))) {
    std::uint64_t one = 0;
    if (block.size() != sizeof one) return Error{Code::kCorrupt, "a number that another worker sent is damaged"};
    std::memcpy(&one, block.data(), sizeof one);
    sum += one;
  }
  return sum;
}

// A worker, or who trains alone: where it is and what it has.
struct Worker {
  base::Env env;
  const Start& start;
  data::Description& description;
  optimize::Memory& memory;
  fabric::Collectives* collectives = nullptr;  // with which it meets the others; null: there are none
  base::Trace* trace = nullptr;
  bool speaks = true;  // shows progress, and warns
};

// `source` is one that was opened for the description and makes it grow; without one, a worker opens its own.
Result<Outcome> Work(const Worker& worker, std::unique_ptr<data::RowSource> source) {
  const base::Env& env = worker.env;
  const Start& start = worker.start;
  const Job& job = start.job;
  data::Description& description = worker.description;
  fabric::Collectives* const collectives = worker.collectives;
  if (source == nullptr) {
    data::Input input = job.input;
    if (!start.whole) input.part = Str(collectives->fabric().rank(), "/", collectives->fabric().size());
    source = TRY(data::Open(env, input, description));
  }
  // Names and moments are learned while reading, and must be the same for all: whoever reads only a part looks at it
  // first.
  const bool own = job.together.own();  // then readers agreed on moments when they were opened
  const bool surveyed = !start.whole && ((description.standardise && !own) || !description.dictionaries.empty());
  if (surveyed)
    TRY(SurveyTogether(env, *collectives, own ? RowsOf::kOwnInputs : RowsOf::kOneInput, *source, description,
                       start.around.stop == nullptr ? kNeverStops : *start.around.stop));
  auto model = TRY(model::Model::Make(start.config));
  if (worker.speaks) model::network::WarnOfSlowLayers(*model, env.log);
  const auto optimizer = TRY(optimize::Optimizer::Make(job.learning.Optimizer(), worker.memory));
  // Who exchanges parameters keeps nothing beside them.
  auto parameters = TRY(model->NewParameters(worker.memory, collectives == nullptr ? optimizer->slots() : 0));
  if (start.earlier != nullptr) parameters.CopyFrom(start.earlier->parameters);
  if (surveyed) TRY(PrepareNames(description, *model, parameters));
  TRY(optimizer->Follow(parameters));
  if (start.earlier != nullptr && start.earlier->sums && !start.earlier->sums->Give(parameters, *optimizer))
    env.log.Warn("sums ignored", "rule", start.earlier->sums->rule, "now", optimizer->name());
  TrainOptions options = OptionsOf(start, *model);
  options.trace = worker.trace;
  options.learn_moments = !surveyed && !own;
  model::Rated rated = start.earlier == nullptr ? model::Rated() : start.earlier->rated;
  if (model->ratings() != nullptr && start.whole) options.rated = &rated;
  if (worker.speaks) options.progress = start.around.progress;
  std::unique_ptr<strategy::Strategy> strategy;
  if (collectives != nullptr) {
    strategy::StrategyOptions how = job.together.strategy;
    how.batch = start.batch;
    how.whole = start.whole;
    how.threads = env.executor.width();
    strategy = TRY(strategy::Strategy::Make(
        how, {*collectives, *model, parameters, *optimizer, worker.memory, env.clock, worker.trace}));
    options.strategy = strategy.get();
    options.own_input = own;
  }
  Report report = TRY(job.learning.optimizer == "lbfgs"
                          ? TrainByLbfgs(env, options, *model, parameters, description, *source, job.learning.l2)
                          : Trainer(env, options, *model, parameters, *optimizer, description).Run(*source));
  std::uint64_t bad_rows = source->bad_rows();
  if (collectives != nullptr && !start.whole) bad_rows = TRY(SumOver(*collectives, bad_rows));  // each had its own rows
  std::optional<model::Sums> sums;
  if (job.keep_optimizer) sums = model::Sums::Of(parameters, *optimizer);
  std::vector<WorkerReport> workers;
  if (strategy != nullptr) workers = TRY(GatherWorkers(*collectives, strategy->times()));
  data::Metadata metadata = {{"rows", Str(report.progressive.rows())}, {"epochs", Str(report.epochs)}};
  return Outcome{.job = {},
                 .trained = {std::move(model), std::move(parameters), description, std::move(metadata),
                             std::move(rated), std::move(sums)},
                 .report = std::move(report),
                 .workers = std::move(workers),
                 .bad_rows = bad_rows};
}

// One of several; `number` is this worker's among those of the process.
Result<Outcome> WorkWith(const base::Env& env, const Start& start, data::Description& description,
                         optimize::Memory& memory, std::unique_ptr<data::RowSource> source, fabric::Fabric& fabric,
                         int number) {
  const Job& job = start.job;
  fabric::Collectives collectives(fabric, TRY(job.together.Collectives()));
  const Topology topology = TRY(SettleTopology(env.files, env.clock, collectives,
                                               {.table = job.together.algorithm_table,
                                                .checkpoint = job.checkpoint,
                                                .measure = job.together.calibrate || !job.deterministic}));
  base::Trace* const trace = start.trace == nullptr ? nullptr : &start.trace->recorder(number);
  const bool processes = trace != nullptr && job.together.workers == 0;
  if (processes) TRY(start.trace->CompareClocks(collectives));
  auto outcome = Work({env, start, description, memory, &collectives, trace, fabric.rank() == 0}, std::move(source));
  // Who was told to stop was told so together with all others, and can still meet them. Nobody ends before all have
  // kept what there is: mpirun ends all others when the first has.
  if (!outcome.ok() && outcome.error().code == Code::kStopped) {
    const auto met = collectives.Barrier().While("waiting for all to keep what there is");
    // kInvalid: somebody is elsewhere, since we stopped in what each does by itself, and the group has ended by that.
    if (!met.ok() && met.error().code != Code::kInvalid) return met.error();
  }
  if (processes && (outcome.ok() || outcome.error().code == Code::kStopped)) {
    const auto gathered = start.trace->Gather(collectives);
    if (outcome.ok()) TRY(gathered);
  }
  if (outcome.ok()) outcome.value().topology = topology;
  return outcome;
}

}  // namespace

Result<Outcome> WorkAlone(const base::Env& env, Start& start, optimize::Memory& memory,
                          std::unique_ptr<data::RowSource> source) {
  base::Trace* const trace = start.trace == nullptr ? nullptr : &start.trace->recorder(0);
  return Work({env, start, start.description, memory, nullptr, trace, true}, std::move(source));
}

Result<Outcome> WorkTogether(const base::Env& env, const Start& start, optimize::Memory& memory) {
  const int count = start.job.together.workers;
  fabric::ThreadsOptions how;
  how.timeout = std::chrono::minutes(10);  // for a worker that reads or saves; one that fails says so at once
  fabric::ThreadsGroup group(count, env.clock, how);
  std::vector<std::optional<Result<Outcome>>> outcomes(static_cast<std::size_t>(count));
  std::vector<base::Thread> workers;
  for (int rank = 0; rank < count; ++rank)
    workers.emplace_back(env.clock, [&, rank] {
      base::ThreadPool pool(std::max(env.executor.width() / count, 1), &env.clock);
      const base::Env own{env.files, env.clock, env.log, pool, env.faults};
      const auto fabric = group.Take(rank);  // and leaves when it is done
      data::Description description = start.description;
      auto outcome = WorkWith(own, start, description, memory, nullptr, *fabric, rank);
      // Not when told to stop: all agreed on it, and others may still be keeping what there is.
      if (!outcome.ok() && outcome.error().code != Code::kStopped) fabric->Abort(outcome.error());
      outcomes[static_cast<std::size_t>(rank)] = std::move(outcome);
    });
  for (base::Thread& worker : workers) worker.Join();
  for (auto& outcome : outcomes)  // the first cause, not those who lost a peer by it
    if (!outcome->ok() && outcome->error().code != Code::kPeerLost) return std::move(*outcome);
  return std::move(*outcomes[0]);
}

Result<Outcome> WorkAsMember(const base::Env& env, Start& start, optimize::Memory& memory, fabric::Fabric& fabric,
                             std::unique_ptr<data::RowSource> source) {
  return WorkWith(env, start, start.description, memory, std::move(source), fabric, 0);
}

}  // namespace freshet::train
