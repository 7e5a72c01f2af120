#include "simulate/simulation.h"

#include <algorithm>
#include <optional>

#include "base/hollow.h"
#include "base/str.h"
#include "simulate/costed_model.h"

namespace freshet::simulate {
namespace {

using fabric::sim::Cluster;

// What one worker has measured.
struct Measured {
  std::optional<Error> error;
  double seconds = 0;
  strategy::StepTimes before, after;
  std::string trace;
};

// Rows come from a disk, one piece ahead of what computes.
class Disk {
 public:
  Disk(base::Clock& clock, double bytes_per_second) : clock_(clock), bytes_per_second_(bytes_per_second) {}

  void Read(double bytes) {
    if (!(bytes > 0)) return;
    const base::Clock::Duration takes(static_cast<base::Clock::Duration::rep>(bytes / bytes_per_second_ * 1e9));
    ready_ = std::max(ready_, begun_) + takes;  // begun when the piece before it was taken
    begun_ = clock_.Now();
    if (ready_ > begun_) clock_.Sleep(ready_ - begun_);
  }

 private:
  base::Clock& clock_;
  const double bytes_per_second_;
  base::Clock::Duration ready_{}, begun_{};
};

class Worker {
 public:
  Worker(const Scenario& scenario, const model::Model& model, const Costs& costs, Cluster::Member& member)
      : scenario_(scenario),
        member_(member),
        costed_(model, costs, CostedModel::Values::kNone,
                [&member](double seconds, int cores) { member.cores().Work(seconds, cores); }) {}

  Result<Measured> Run() {
    const std::unique_ptr<fabric::Fabric> fabric = member_.Connect();
    fabric::Collectives collectives(*fabric, scenario_.collectives);
    optimize::HollowMemory memory;
    optimize::OptimizerOptions rule;
    rule.kind = "momentum";
    const auto optimizer = TRY(optimize::Optimizer::Make(rule, memory));
    optimize::Parameters parameters = TRY(costed_.NewParameters(memory));
    TRY(optimizer->Follow(parameters));
    strategy::StrategyOptions options = scenario_.strategy;
    options.threads = std::max(1, scenario_.platform.cores / scenario_.workers_per_node);
    base::Trace trace(member_.clock());
    const bool traced = member_.rank() < scenario_.traced;
    const auto strategy = TRY(strategy::Strategy::Make(
        options, {collectives, costed_, parameters, *optimizer, memory, member_.clock(), traced ? &trace : nullptr}));

    data::Batch piece;
    piece.rows = strategy->piece();
    piece.labels = piece.dense = static_cast<const float*>(base::Hollow());
    const data::Batch mine = strategy->Share(piece);
    const std::span<float> scores = base::HollowFloats(mine.rows * costed_.scores());
    const int workers = scenario_.nodes * scenario_.workers_per_node;
    const double disk = scenario_.shared_disk ? scenario_.platform.shared_disk_gb_s * 1e9 / workers
                                              : scenario_.platform.disk_mb_s * 1e6 / scenario_.workers_per_node;
    Disk reader(member_.clock(), disk);

    Measured measured;
    base::Clock::Duration begun{};
    for (int step = 0; step <= scenario_.steps; ++step) {
      if (step == 1) {
        TRY(collectives.Barrier());
        measured.before = strategy->times();
        begun = member_.clock().Now();
      }
      const auto waits = member_.clock().Now();
      reader.Read(static_cast<double>(mine.rows) * scenario_.row_bytes);
      strategy->CountRead(member_.clock().Now() - waits);
      (void)TRY(strategy->Step(piece, mine, scores));
    }
    measured.seconds = base::Seconds(member_.clock().Now() - begun);
    measured.after = strategy->times();
    TRY(collectives.Barrier());
    if (traced)
      measured.trace = trace.ToJson(member_.rank(), Str("rank ", member_.rank()), Str("node ", member_.node()),
                                    [](base::Clock::Duration time) { return time; });
    return measured;
  }

 private:
  const Scenario& scenario_;
  Cluster::Member& member_;
  const CostedModel costed_;
};

// Updates that a step of the strategy makes.
std::uint64_t UpdatesOf(const strategy::StrategyOptions& options) {
  return options.kind == "allreduce" ? 1 : options.every;
}

Result<void> Check(const Scenario& scenario) {
  const int workers = scenario.nodes * scenario.workers_per_node;
  if (scenario.nodes < 1 || scenario.nodes > scenario.platform.nodes)
    return Error{Code::kInvalid,
                 Str(scenario.nodes, " nodes of ", scenario.platform.name, ": it has ", scenario.platform.nodes)};
  if (scenario.workers_per_node < 1 || scenario.workers_per_node > scenario.platform.cores)
    return Error{Code::kInvalid, Str(scenario.workers_per_node, " workers on a node of ", scenario.platform.name,
                                     ": expected 1 to its ", scenario.platform.cores, " cores")};
  if (scenario.strategy.batch < static_cast<std::uint64_t>(workers))
    return Error{Code::kInvalid,
                 Str("batch ", scenario.strategy.batch, " of ", workers, " workers: expected a row or more for each")};
  return {};
}

}  // namespace

Result<Outcome> Simulate(const Scenario& scenario, const model::Model& model, const Costs& costs,
                         fabric::sim::Flows& flows) {
  TRY(scenario.platform.Validate());
  TRY(Check(scenario));
  flows.Restart();
  fabric::SimOptions fabric;
  fabric.heartbeat = std::chrono::hours(24);  // nobody dies here
  fabric.wait_timeout = std::chrono::hours(24 * 365);
  Cluster cluster({.platform = scenario.platform,
                   .nodes = scenario.nodes,
                   .workers_per_node = scenario.workers_per_node,
                   .seed = scenario.seed,
                   .work = scenario.work,
                   .slow_node = scenario.slow_node,
                   .slow_times = scenario.slow_times,
                   .fabric = fabric},
                  flows);
  std::vector<Measured> measured(static_cast<std::size_t>(cluster.size()));
  cluster.Run([&](Cluster::Member& member) {
    Result<Measured> result = Worker(scenario, model, costs, member).Run();
    Measured& mine = measured[static_cast<std::size_t>(member.rank())];
    if (result.ok())
      mine = std::move(result).value();
    else
      mine.error = std::move(result).error();
  });

  Outcome outcome;
  outcome.reach = scenario.platform.EfficiencyAt(static_cast<double>(scenario.strategy.batch) / cluster.size()) /
                  scenario.platform.EfficiencyAt(1e9);
  const double updates = static_cast<double>(scenario.steps) * static_cast<double>(UpdatesOf(scenario.strategy));
  const auto workers = static_cast<double>(cluster.size());
  for (const Measured& one : measured) {
    if (one.error) return *one.error;
    if (!one.trace.empty()) outcome.trace += Str(outcome.trace.empty() ? "" : ",", one.trace);
    outcome.step_seconds = std::max(outcome.step_seconds, one.seconds / updates);
    for (double strategy::StepTimes::*part :
         {&strategy::StepTimes::read, &strategy::StepTimes::compute, &strategy::StepTimes::wait,
          &strategy::StepTimes::exchange, &strategy::StepTimes::apply})
      outcome.times.*part += (one.after.*part - one.before.*part) / updates / workers;
    outcome.slowest_compute = std::max(outcome.slowest_compute, (one.after.compute - one.before.compute) / updates);
    outcome.bytes_per_update += static_cast<double>(one.after.bytes_sent - one.before.bytes_sent) / updates / workers;
  }
  outcome.rows_per_second = static_cast<double>(scenario.strategy.batch) / outcome.step_seconds;
  outcome.simulated_seconds = base::Seconds(cluster.now());
  outcome.letters = cluster.letters();
  outcome.links = flows.Carried();
  const auto busy = [&](const fabric::sim::Flows::Link& link) { return link.bytes / link.bytes_per_second; };
  std::sort(outcome.links.begin(), outcome.links.end(),
            [&](const auto& a, const auto& b) { return std::pair(-busy(a), a.name) < std::pair(-busy(b), b.name); });
  if (!outcome.links.empty()) outcome.busiest = busy(outcome.links.front()) / outcome.simulated_seconds;
  for (int node = 0; node < scenario.nodes; ++node)
    outcome.cores_busy +=
        cluster.cores(node).busy() / scenario.platform.cores / outcome.simulated_seconds / scenario.nodes;
  return outcome;
}

std::string Outcome::Bottleneck() const {
  const double total = std::max(times.total(), 1e-12);
  if (times.read > 0.3 * total) return "disk";
  if (slowest_compute > 1.3 * times.compute && times.wait > 0.15 * total) return "stragglers";
  if (times.compute + times.apply >= 0.7 * total) return reach < 0.8 ? "small batches" : "computing";
  if (busiest > 0.5 && !links.empty()) return Str("link ", links.front().name);
  return busiest > 0.1 ? "network" : "latency and messages";
}

}  // namespace freshet::simulate
