#include <cstring>

#include "base/option.h"
#include "base/thread.h"
#include "base/thread_pool.h"
#include "fabric/threads/threads_fabric.h"
#include "model/network/network.h"
#include "strategy/ring/plan.h"
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
  if (model.traits().uses_team) options.shuffle_window_bytes = (job.together.strategy.large ? 8 : 64) << 20;
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
  options.common = start.common;
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
  bool speaks = true;                     // shows progress, and warns
  fabric::ElasticGroup* group = nullptr;  // in which it meets others that come and go
  fabric::Collectives::Options how = {};  // likewise
  data::LeasedParts* leases = nullptr;    // the source, where they read parts of the input
};

// Names and moments of all rows, found by all who begin: each reads a part.
Result<void> SurveyParts(const base::Env& env, const Start& start, fabric::Collectives& collectives,
                         data::Description& description) {
  data::Input input = start.job.input;
  input.part = Str(collectives.fabric().rank(), "/", collectives.fabric().size());
  const auto source = TRY(data::Open(env, input, description));
  return SurveyTogether(env, collectives, RowsOf::kOneInput, *source, description,
                        start.around.stop == nullptr ? kNeverStops : *start.around.stop);
}

// Must names and moments, which are learned while reading, be known before?
bool MustBeSurveyed(const Start& start, const data::Description& description) {
  const bool own = start.job.together.own();  // then readers agreed on moments when they were opened
  return !start.whole && ((description.standardise && !own) || !description.dictionaries.empty());
}

// Of a ring whose members come and go: what would depend on how many there are is settled for as many as there may be, and a
// network must be one that can be cut for any number of them.
Result<void> SettleRing(const Job& job, const model::Model& model, strategy::StrategyOptions& options) {
  if (model.config().kind != "network") return {};
  const Together::Bounds bounds = TRY(job.together.ElasticBounds());
  if (options.micro == 0) options.micro = strategy::ring::UsualMicros(options.batch, bounds.most);
  for (int members = bounds.least; members <= bounds.most; ++members)
    TRY(strategy::ring::CheckCut(options, model, members)
            .While(Str("cutting the network for ", members, " workers (", Option("elastic"), ")")));
  return {};
}

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
  const bool own = job.together.own();
  const bool surveyed = MustBeSurveyed(start, description);
  if (surveyed && collectives != nullptr)
    TRY(SurveyTogether(env, *collectives, own ? RowsOf::kOwnInputs : RowsOf::kOneInput, *source, description,
                       start.around.stop == nullptr ? kNeverStops : *start.around.stop));
  auto model = TRY(model::Model::Make(start.config));
  const model::Model& computing = start.around.dressed ? start.around.dressed(*model) : *model;
  if (worker.speaks) model::network::WarnOfSlowLayers(*model, env.log);
  optimize::Memory& whole = start.WholeIn(worker.memory);
  const auto optimizer = TRY(optimize::Optimizer::Make(job.learning.Optimizer(), whole));
  // Who exchanges parameters keeps nothing beside them.
  const bool together = collectives != nullptr || worker.group != nullptr;
  auto parameters = TRY(model->NewParameters(whole, together ? 0 : optimizer->slots()));
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
  if (worker.speaks || start.around.own_progress)
    options.progress = [&around = start.around, speaks = worker.speaks](const Progress& progress) {
      if (around.own_progress) around.own_progress(progress);
      if (around.progress && speaks) around.progress(progress);
    };
  std::unique_ptr<strategy::Strategy> strategy;
  const auto at = [&faults = env.faults](std::string_view place) { return faults.Hit(place); };
  strategy::ElasticStrategy* elastic = nullptr;
  std::optional<Choice> choice;
  if (worker.group != nullptr) {
    strategy::ElasticOptions how{
        .strategy = job.together.strategy, .how = worker.how, .comes = start.around.elastic->comes};
    how.strategy.batch = start.batch;
    how.strategy.whole = start.whole;
    how.strategy.threads = env.executor.width();
    how.evict_factor = job.together.evict;
    how.evict_seconds = job.together.evict_after;
    how.copy_every = job.together.copy_every;
    how.changed = start.around.changed;
    if (how.strategy.kind == "ring") TRY(SettleRing(job, computing, how.strategy));
    auto made = TRY(strategy::ElasticStrategy::Make(
        how, *worker.group,
        {computing, parameters, *optimizer, worker.memory, env.clock, worker.trace, at, start.around.panel}));
    elastic = made.get();
    strategy = std::move(made);
    options.strategy = elastic;
    options.leases = worker.leases;
    // Who is the first may change.
    options.progress = [elastic, &around = start.around](const Progress& progress) {
      if (around.own_progress) around.own_progress(progress);
      if (around.progress && elastic->rank() == 0) around.progress(progress);
    };
  }
  const bool by_lbfgs = job.learning.optimizer == "lbfgs", by_coordinates = job.learning.optimizer == "coordinates";
  strategy::FullBatch full_batch({.in_ranges = job.together.strategy.kind == "server", .whole = start.whole},
                                 {collectives, env.clock, worker.trace});
  if (collectives != nullptr && !by_lbfgs && !by_coordinates) {
    strategy::StrategyOptions how = job.together.strategy;
    how.batch = start.batch;
    how.seed = job.learning.seed;
    how.whole = start.whole;
    how.threads = env.executor.width();
    if (how.kind == "auto") {
      choice = TRY(
          ChooseStrategy(env.files, env.clock, *collectives, *model, {.strategy = how, .checkpoint = job.checkpoint}));
      how.kind = "allreduce";
      how.bucket_bytes = choice->bucket_bytes;
      if (choice->algorithm != fabric::Algorithm::kAuto) collectives->SetTable({{{0, choice->algorithm}}});
      options.choice = choice->ToText();
    }
    strategy = TRY(strategy::Strategy::Make(how, {*collectives, computing, parameters, *optimizer, worker.memory,
                                                  env.clock, worker.trace, at, start.around.panel}));
    options.strategy = strategy.get();
    options.own_input = own;
  }
  std::optional<Descent> descent;
  auto trained = [&]() -> Result<Report> {
    if (by_coordinates)
      return TrainByCoordinates(env, options, computing, parameters, description, *source,
                                {.how = job.together.descent,
                                 .l1 = job.learning.l1,
                                 .l2 = job.learning.l2,
                                 .collectives = collectives,
                                 .times = full_batch.times(),
                                 .descent = descent.emplace()});
    if (by_lbfgs)
      return TrainByLbfgs(env, options, computing, parameters, description, *source, job.learning.l2, full_batch);
    return Trainer(env, options, computing, parameters, *optimizer, description).Run(*source);
  }();
  if (elastic != nullptr && !trained.ok() && trained.error().code == Code::kStopped) (void)elastic->Barrier();
  Report report = TRY(std::move(trained));
  std::uint64_t bad_rows = source->bad_rows();
  if (collectives != nullptr && !start.whole) bad_rows = TRY(SumOver(*collectives, bad_rows));  // each had its own rows
  if (worker.leases != nullptr)
    bad_rows = static_cast<std::uint64_t>(TRY(elastic->Sum({static_cast<double>(bad_rows)}))[0]);
  std::optional<model::Sums> sums;
  if (job.keep_optimizer) sums = model::Sums::Of(parameters, *optimizer);
  std::vector<WorkerReport> workers;
  const auto gather = [&](fabric::Collectives& all) -> Result<void> {
    workers = TRY(strategy == nullptr ? GatherWorkers(all, full_batch.times())
                                      : GatherWorkers(all, strategy->times(), strategy->report()));
    return {};
  };
  if (elastic != nullptr) TRY(elastic->Together(gather));
  if (elastic != nullptr && start.trace != nullptr)
    TRY(elastic->Together([&](fabric::Collectives& all) { return start.trace->GatherThose(all); }));
  if (collectives != nullptr) TRY(gather(*collectives));
  data::Metadata metadata = {{"rows", Str(report.progressive.rows())}, {"epochs", Str(report.epochs)}};
  return Outcome{.job = {},
                 .trained = {std::move(model), std::move(parameters), description, std::move(metadata),
                             std::move(rated), std::move(sums)},
                 .report = std::move(report),
                 .workers = std::move(workers),
                 .choice = std::move(choice),
                 .descent = std::move(descent),
                 .group = elastic == nullptr ? std::nullopt : std::optional(elastic->history()),
                 .bad_rows = bad_rows,
                 .rank = strategy == nullptr ? full_batch.rank() : strategy->rank()};
}

// Who makes up the first generation: all who begin, in the order of their ranks.
Result<fabric::Roster> FirstRoster(const fabric::Seat& seat, Members* members) {
  fabric::Roster roster{.generation = 1, .seats = {seat}};
  if (members == nullptr) return roster;
  roster.seats.clear();
  for (const std::string& text : TRY(members->Tell("places", Str(seat.id, "\n", seat.address, "\n", seat.name)))) {
    const auto lines = Split(text, '\n');
    fabric::Seat& each = roster.seats.emplace_back();
    if (lines.size() != 3) return Error{Code::kCorrupt, "what another worker says of its place is damaged"};
    each.id = std::strtoull(std::string(lines[0]).c_str(), nullptr, 10);
    each.address = lines[1];
    each.name = lines[2];
  }
  return roster;
}

// One of several; `number` is this worker's among those of the process.
Result<Outcome> WorkWith(const base::Env& env, const Start& start, data::Description& description,
                         optimize::Memory& memory, std::unique_ptr<data::RowSource> source, fabric::Fabric& fabric,
                         int number) {
  const Job& job = start.job;
  fabric::Collectives collectives(fabric, TRY(job.together.Collectives()));
  Topology topology = TRY(SettleTopology(env.files, env.clock, collectives,
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
  if (!outcome.ok()) return outcome;
  const std::optional<Choice>& choice = outcome.value().choice;
  if (choice && choice->algorithm != fabric::Algorithm::kAuto && topology.algorithm == "auto" &&
      topology.chosen != "resumed") {
    topology.table = collectives.table().ToText();
    topology.chosen = "simulated";
  }
  outcome.value().topology = topology;
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

Result<Outcome> WorkElastic(const base::Env& env, Start& start, optimize::Memory& memory, Members* members,
                            std::unique_ptr<data::RowSource> source) {
  const fabric::ElasticPlace& place = *start.around.elastic;
  const Job& job = start.job;
  fabric::Roster first;
  if (!place.comes) first = TRY(FirstRoster(place.seat, members));
  fabric::Collectives::Options how = TRY(job.together.Collectives());
  Topology topology{.algorithm = std::string(NameOf(how.algorithm))};
  std::unique_ptr<fabric::Fabric> fabric;
  if (members != nullptr) {
    fabric::Collectives collectives(members->fabric(), how);
    topology = TRY(SettleTopology(env.files, env.clock, collectives,
                                  {.table = job.together.algorithm_table,
                                   .checkpoint = job.checkpoint,
                                   .measure = job.together.calibrate || !job.deterministic}));
    if (topology.chosen != "fixed") how.table = collectives.table();
    if (MustBeSurveyed(start, start.description)) TRY(SurveyParts(env, start, collectives, start.description));
    fabric = members->TakeFabric();
  } else if (!place.comes && MustBeSurveyed(start, start.description)) {
    fabric::ThreadsGroup one(1, env.clock);
    const auto alone = one.Take(0);
    fabric::Collectives collectives(*alone, {});
    TRY(SurveyParts(env, start, collectives, start.description));
  }
  data::LeasedParts* leases = nullptr;
  if (!start.whole) {
    const auto open = [&](std::uint64_t part) {
      data::Input input = job.input;
      input.part = Str(part, "/", job.together.MostWorkers(start.workers));
      return data::Open(env, input, start.description);
    };
    auto made = TRY(data::LeasedParts::Make(static_cast<std::uint64_t>(job.together.MostWorkers(start.workers)), open));
    leases = made.get();
    source = std::move(made);
  }
  const auto connect = [&](const fabric::Roster& roster, int rank,
                           const std::atomic<bool>& stop) -> Result<std::unique_ptr<fabric::Fabric>> {
    if (fabric != nullptr) return std::move(fabric);
    return place.connect(roster, rank, stop);
  };
  fabric::ElasticGroup group(place.options, place.seat, std::move(first), *place.post, connect, env.clock);
  auto outcome = Work({.env = env,
                       .start = start,
                       .description = start.description,
                       .memory = memory,
                       .trace = start.trace == nullptr ? nullptr : &start.trace->recorder(0),
                       .speaks = !place.comes && (members == nullptr || group.rank() == 0),
                       .group = &group,
                       .how = how,
                       .leases = leases},
                      std::move(source));
  if (outcome.ok()) outcome.value().topology = topology;
  return outcome;
}

Result<Outcome> WorkAsMember(const base::Env& env, Start& start, optimize::Memory& memory, fabric::Fabric& fabric,
                             std::unique_ptr<data::RowSource> source) {
  return WorkWith(env, start, start.description, memory, std::move(source), fabric, 0);
}

}  // namespace freshet::train
