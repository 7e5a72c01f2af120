#include "train_worker.h"

#include <cstring>
#include <thread>

#include "fabric/threads/threads_fabric.h"
#include "model/model_file.h"
#include "model/network/network.h"
#include "train/lbfgs_trainer.h"
#include "train/survey.h"

namespace freshet::cli {
namespace {

train::TrainOptions OptionsOf(Door& door, const Start& start, const model::Model& model) {
  const TrainFlags& flags = start.flags;
  train::TrainOptions options;
  options.epochs = flags.epochs;
  options.batch = start.batch;
  options.accumulate = flags.workers.strategy.accumulate;
  options.deterministic = flags.deterministic;
  options.shuffle = flags.shuffle;
  if (model.traits().uses_team) options.shuffle_window_bytes = 64 << 20;
  options.mirror = flags.input.mirror;
  options.prefetch = flags.prefetch;
  options.seed = flags.learning.seed;
  options.hold_out = {flags.holdout, flags.holdout_after, flags.learning.seed};
  options.patience = flags.patience;
  options.cache_path = flags.cache;
  options.scratch_directory = flags.scratch;
  options.checkpoint_path = flags.checkpoint;
  options.checkpoint_seconds = flags.checkpoint_seconds;
  options.fingerprint = start.fingerprint;
  options.inputs = start.inputs;
  options.stop = &door.stop;
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

// Trains as one worker, or alone when there is nobody to meet. `source` is one that was opened for `description` and
// makes it grow; without one, a worker opens its own.
Result<Outcome> Work(Door& door, const Start& start, data::Description& description, optimize::Memory& memory,
                     base::Executor& pool, std::unique_ptr<data::RowSource> source, fabric::Collectives* collectives,
                     base::Trace* trace, ProgressView* view) {
  const base::Env env = door.env(pool);
  const TrainFlags& flags = start.flags;
  Outcome outcome;
  if (source == nullptr) {
    data::Input input = flags.input;
    if (!start.whole) input.part = Str(collectives->fabric().rank(), "/", collectives->fabric().size());
    source = TRY(data::Open(env, input, description));
  }
  // Names and moments are learned while reading, and must be the same for all: whoever reads only a part looks at it
  // first.
  const bool own = flags.workers.own();  // then readers agreed on moments when they were opened
  const bool surveyed = !start.whole && ((description.standardise && !own) || !description.dictionaries.empty());
  if (surveyed)
    TRY(train::SurveyTogether(env, *collectives, own ? train::RowsOf::kOwnInputs : train::RowsOf::kOneInput, *source,
                              description, door.stop));
  outcome.model = TRY(model::Model::Make(start.config));
  if (view != nullptr) model::network::WarnOfSlowLayers(*outcome.model, door.log);
  const auto optimizer = TRY(optimize::Optimizer::Make(flags.learning.Optimizer(), memory));
  // Who exchanges parameters keeps nothing beside them.
  outcome.parameters = TRY(outcome.model->NewParameters(memory, collectives == nullptr ? optimizer->slots() : 0));
  optimize::Parameters& parameters = *outcome.parameters;
  if (start.weights != nullptr) parameters.CopyFrom(*start.weights);
  if (surveyed) TRY(train::PrepareNames(description, *outcome.model, parameters));
  TRY(optimizer->Follow(parameters));
  if (start.sums != nullptr && !start.sums->Give(parameters, *optimizer))
    door.log.Warn("sums ignored", "rule", start.sums->rule, "now", optimizer->name());
  train::TrainOptions options = OptionsOf(door, start, *outcome.model);
  options.trace = trace;
  options.learn_moments = !surveyed && !own;
  if (start.rated != nullptr) outcome.rated = *start.rated;
  if (outcome.model->ratings() != nullptr && start.whole) options.rated = &outcome.rated;
  if (view != nullptr) options.progress = [view](const train::Progress& progress) { view->Show(progress); };
  std::unique_ptr<strategy::Strategy> strategy;
  if (collectives != nullptr) {
    strategy::StrategyOptions how = flags.workers.strategy;
    how.batch = start.batch;
    how.whole = start.whole;
    how.threads = pool.width();
    strategy = TRY(strategy::Strategy::Make(
        how, {*collectives, *outcome.model, parameters, *optimizer, memory, door.clock, trace}));
    options.strategy = strategy.get();
    options.own_input = own;
  }
  outcome.report =
      TRY(flags.learning.optimizer == "lbfgs"
              ? train::TrainByLbfgs(env, options, *outcome.model, parameters, description, *source, flags.learning.l2)
              : train::Trainer(env, options, *outcome.model, parameters, *optimizer, description).Run(*source));
  outcome.bad_rows = source->bad_rows();
  if (collectives != nullptr && !start.whole)
    outcome.bad_rows = TRY(SumOver(*collectives, outcome.bad_rows));  // each had rows of its own
  if (flags.keep_optimizer) outcome.sums = model::Sums::Of(parameters, *optimizer);
  outcome.description = description;
  if (strategy != nullptr) outcome.workers = TRY(GatherWorkers(*collectives, strategy->times()));
  return outcome;
}

// `worker` is this one's number among those of the process; description and source as Work has them.
Result<Outcome> WorkWith(Door& door, const Start& start, data::Description& description, optimize::Memory& memory,
                         base::Executor& pool, std::unique_ptr<data::RowSource> source, fabric::Fabric& fabric,
                         int worker, ProgressView& view) {
  const TrainFlags& flags = start.flags;
  fabric::Collectives collectives(fabric, TRY(flags.workers.Collectives()));
  const train::Topology topology =
      TRY(train::SettleTopology(door.files, door.clock, collectives,
                                {.table = flags.workers.algorithm_table,
                                 .checkpoint = flags.checkpoint,
                                 .measure = flags.workers.calibrate || !flags.deterministic}));
  base::Trace* const trace = start.trace == nullptr ? nullptr : &start.trace->recorder(worker);
  const bool processes = trace != nullptr && flags.workers.workers == 0;
  if (processes) TRY(start.trace->CompareClocks(collectives));
  auto outcome = Work(door, start, description, memory, pool, std::move(source), &collectives, trace,
                      fabric.rank() == 0 ? &view : nullptr);
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

Result<Outcome> WorkAlone(Door& door, Start& start, optimize::Memory& memory, base::Executor& pool,
                          std::unique_ptr<data::RowSource> source, ProgressView& view) {
  base::Trace* const trace = start.trace == nullptr ? nullptr : &start.trace->recorder(0);
  return Work(door, start, start.description, memory, pool, std::move(source), nullptr, trace, &view);
}

Result<Outcome> WorkTogether(Door& door, const Start& start, optimize::Memory& memory, int threads,
                             ProgressView& view) {
  const int count = start.flags.workers.workers;
  fabric::ThreadsOptions how;
  how.timeout = std::chrono::minutes(10);  // for a worker that reads or saves; one that fails says so at once
  fabric::ThreadsGroup group(count, door.clock, how);
  std::vector<std::optional<Result<Outcome>>> outcomes(static_cast<std::size_t>(count));
  {
    std::vector<std::jthread> workers;
    for (int rank = 0; rank < count; ++rank)
      workers.emplace_back([&, rank] {
        base::ThreadPool pool(std::max(threads / count, 1));
        const auto fabric = group.Take(rank);  // and leaves when it is done
        data::Description description = start.description;
        auto outcome = WorkWith(door, start, description, memory, pool, nullptr, *fabric, rank, view);
        // Not when told to stop: all agreed on it, and others may still be keeping what there is.
        if (!outcome.ok() && outcome.error().code != Code::kStopped) fabric->Abort(outcome.error());
        outcomes[static_cast<std::size_t>(rank)] = std::move(outcome);
      });
  }
  for (auto& outcome : outcomes)  // the first cause, not those who lost a peer by it
    if (!outcome->ok() && outcome->error().code != Code::kPeerLost) return std::move(*outcome);
  return std::move(*outcomes[0]);
}

Result<Outcome> WorkAsMember(Door& door, Start& start, optimize::Memory& memory, base::Executor& pool,
                             fabric::Fabric& fabric, std::unique_ptr<data::RowSource> source, ProgressView& view) {
  return WorkWith(door, start, start.description, memory, pool, std::move(source), fabric, 0, view);
}

}  // namespace freshet::cli
