#include "simulate/simulation.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/hollow.h"
#include "base/option.h"
#include "base/str.h"
#include "simulate/costed_network.h"
#include "simulate/steps.h"
#include "simulate/subject.h"

namespace freshet::simulate {
namespace {

using fabric::sim::Cluster;

// Updates are made by servers, who say by themselves what they take (Fabric::Spend).
class WithoutUpdates final : public Costs {
 public:
  explicit WithoutUpdates(const Costs& costs) : costs_(costs) {}
  StepCost Of(std::size_t rows, int cores) const override {
    StepCost cost = costs_.Of(rows, cores);
    cost.apply = 0;
    return cost;
  }

 private:
  const Costs& costs_;
};

// Its members share in each row.
bool Spread(const Scenario& scenario, const model::Model& model) {
  return scenario.strategy.kind == "ring" && model.partials() != nullptr;
}
// Its members run layers themselves.
bool Ringed(const Scenario& scenario, const model::Model& model) {
  return scenario.strategy.kind == "modules" || (scenario.strategy.kind == "ring" && model.partials() == nullptr);
}
// What costs it takes is asked layer by layer.
bool ByLayers(const Scenario& scenario, const model::Model& model) {
  return Ringed(scenario, model) || scenario.strategy.kind == "slices" || scenario.strategy.kind == "hybrid";
}
bool Served(const Scenario& scenario) { return scenario.strategy.kind == "server"; }
int ServersOf(const Scenario& scenario) { return Served(scenario) ? scenario.strategy.servers : 0; }

// What one worker has measured.
struct Measured {
  std::optional<Error> error;
  StepsMade made;
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

// `drawn` are rows for a model whose numbers are real, or whose labels are looked at.
Result<Measured> Work(const Scenario& scenario, const model::Model& model, const Costs& costs, const DrawnRows* drawn,
                      Cluster::Member& member) {
  const WithoutUpdates served(costs);
  const Costs& of_worker = Served(scenario) ? static_cast<const Costs&>(served) : costs;
  const bool real = drawn != nullptr && !Ringed(scenario, model);
  const auto spend = [&member](double seconds, int cores) { member.cores().Work(seconds, cores); };
  const int workers = scenario.nodes * scenario.workers_per_node;
  const CostedModel costed(model, of_worker, real ? CostedModel::Values::kReal : CostedModel::Values::kNone, spend, {},
                           Spread(scenario, model) ? workers : 1);
  const std::unique_ptr<fabric::Fabric> fabric = member.Connect();
  optimize::HollowMemory hollow;
  optimize::HeapMemory heap;
  Disk disk(member.clock(), scenario.shared_disk ? scenario.platform.shared_disk_gb_s * 1e9 / workers
                                                 : scenario.platform.disk_mb_s * 1e6 / scenario.workers_per_node);
  base::Trace trace(member.clock());
  const bool traced = member.rank() < scenario.traced;
  StepsOptions options{.strategy = scenario.strategy,
                       .collectives = scenario.collectives,
                       .steps = scenario.steps,
                       .read = [&](std::size_t rows) { disk.Read(static_cast<double>(rows) * scenario.row_bytes); },
                       .trace = traced ? &trace : nullptr};
  options.strategy.threads = std::max(1, scenario.platform.cores / scenario.workers_per_node);
  std::unique_ptr<CostedNetwork> network;
  if (ByLayers(scenario, model)) network = TRY(CostedNetwork::Make(model, costs, options.strategy.threads, spend));
  data::Batch rows;
  rows.rows = RowsOfStep(scenario.strategy);
  rows.labels = rows.dense = static_cast<const float*>(base::Hollow());
  std::vector<float> scores(drawn != nullptr ? rows.rows * costed.scores() : 0);
  Measured measured;
  measured.made = TRY(Ringed(scenario, model)
                          ? MakeSteps(options, *fabric, member.clock(), *network, hollow, drawn->batch(), scores)
                      : real ? MakeSteps(options, *fabric, member.clock(), costed, heap, drawn->batch(), scores)
                             : MakeSteps(options, *fabric, member.clock(), network ? *network : costed, hollow, rows,
                                         base::HollowFloats(rows.rows * costed.scores())));
  if (traced)
    measured.trace = trace.ToJson(member.rank(), Str("rank ", member.rank()), Str("node ", member.node()),
                                  [](base::Clock::Duration time) { return time; });
  return measured;
}

Result<void> Check(const Scenario& scenario) {
  const int workers = scenario.nodes * scenario.workers_per_node;
  const int servers = ServersOf(scenario);
  if (scenario.nodes < 1 || servers < 0 || servers > scenario.platform.nodes - scenario.nodes)
    return Error{Code::kInvalid, Str(scenario.nodes, " nodes", servers == 0 ? "" : Str(" and ", servers, " servers"),
                                     " of ", scenario.platform.name, ": it has ", scenario.platform.nodes)};
  if (scenario.strategy.kind == "groups" && !scenario.strategy.synchrony.empty())
    return Error{Code::kInvalid,
                 Str(Option("strategy"), " groups with ", Option("synchrony"), " ", scenario.strategy.synchrony,
                     ", through a server, is not simulated by costs alone; use freshet compare")};
  // What the others do for one who is late depends on gradients, which costs do not have.
  if (scenario.strategy.backup > 0)
    return Error{Code::kInvalid,
                 Str(Option("backup"), " is not simulated by costs alone; use freshet compare (allreduce+1, bsp+1)")};
  constexpr int kMostWorkers = 1'000'000;
  if (scenario.workers_per_node < 1 || scenario.workers_per_node > kMostWorkers / scenario.nodes)
    return Error{Code::kInvalid, Str(scenario.workers_per_node, " workers on each of ", scenario.nodes,
                                     " nodes: expected 1 or more, and at most ", kMostWorkers, " in all")};
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
                   .more_nodes = ServersOf(scenario),
                   .seed = scenario.seed,
                   .work = scenario.work,
                   .slow_node = scenario.slow_node,
                   .slow_times = scenario.slow_times,
                   .fabric = fabric},
                  flows);
  std::vector<Measured> measured(static_cast<std::size_t>(cluster.size()));
  std::optional<DrawnRows> drawn;
  if (!model.config().dense || Spread(scenario, model) || Ringed(scenario, model))
    drawn.emplace(model, RowsOfStep(scenario.strategy), scenario.seed);
  cluster.Run([&](Cluster::Member& member) {
    Result<Measured> result = Work(scenario, model, costs, drawn ? &*drawn : nullptr, member);
    Measured& mine = measured[static_cast<std::size_t>(member.rank())];
    if (result.ok())
      mine = std::move(result).value();
    else
      mine.error = std::move(result).error();
  });

  Outcome outcome;
  const auto workers = static_cast<double>(scenario.nodes * scenario.workers_per_node);
  outcome.reach = scenario.platform.EfficiencyAt(static_cast<double>(scenario.strategy.batch) / workers) /
                  scenario.platform.EfficiencyAt(1e9);
  const double updates = static_cast<double>(scenario.steps) * static_cast<double>(UpdatesOfStep(scenario.strategy));
  for (const Measured& one : measured)
    if (one.error) return *one.error;
  measured.resize(static_cast<std::size_t>(workers));  // the others have no rows
  for (const Measured& one : measured) {
    if (!one.trace.empty()) outcome.trace += Str(outcome.trace.empty() ? "" : ",", one.trace);
    outcome.step_seconds = std::max(outcome.step_seconds, one.made.seconds / updates);
    for (double strategy::StepTimes::*part :
         {&strategy::StepTimes::read, &strategy::StepTimes::compute, &strategy::StepTimes::wait,
          &strategy::StepTimes::exchange, &strategy::StepTimes::apply})
      outcome.times.*part += (one.made.after.*part - one.made.before.*part) / updates / workers;
    outcome.slowest_compute =
        std::max(outcome.slowest_compute, (one.made.after.compute - one.made.before.compute) / updates);
    outcome.bytes_per_update +=
        static_cast<double>(one.made.after.bytes_sent - one.made.before.bytes_sent) / updates / workers;
  }
  outcome.rows_per_second = static_cast<double>(scenario.strategy.batch) / outcome.step_seconds;
  outcome.simulated_seconds = base::Seconds(cluster.now());
  outcome.letters = cluster.letters();
  outcome.links = flows.Carried();
  const auto busy = [&](const fabric::sim::Flows::Link& link) { return link.bytes / link.bytes_per_second; };
  std::sort(outcome.links.begin(), outcome.links.end(),
            [&](const auto& a, const auto& b) { return std::pair(-busy(a), a.name) < std::pair(-busy(b), b.name); });
  if (!outcome.links.empty()) outcome.busiest = busy(outcome.links.front()) / outcome.simulated_seconds;
  const std::vector<double>& on_messages = cluster.on_messages();
  const double most = *std::max_element(on_messages.begin(), on_messages.end());
  const double mean = std::accumulate(on_messages.begin(), on_messages.end(), 0.0) / cluster.size();
  const auto server = on_messages.begin() + static_cast<std::ptrdiff_t>(measured.size());
  if (server != on_messages.end())
    outcome.server = *std::max_element(server, on_messages.end()) / outcome.simulated_seconds;
  else if (most > 2 * mean)
    outcome.driver = most / outcome.simulated_seconds;
  const int nodes = scenario.nodes + ServersOf(scenario);
  for (int node = 0; node < nodes; ++node)
    outcome.cores_busy += cluster.cores(node).busy() / scenario.platform.cores / outcome.simulated_seconds / nodes;
  return outcome;
}

std::string Outcome::Bottleneck() const {
  const double total = std::max(times.total(), 1e-12);
  if (times.read > 0.3 * total) return "disk";
  if (slowest_compute > 1.3 * times.compute && times.wait > 0.15 * total) return "stragglers";
  if (times.compute + times.apply >= 0.7 * total) return reach < 0.8 ? "small batches" : "computing";
  if (driver > 0.4) return "a driver's messages";
  if (server > 0.5) return "a server's core";
  if (busiest > 0.5 && !links.empty()) return Str("link ", links.front().name);
  return busiest > 0.1 ? "network" : "latency and messages";
}

}  // namespace freshet::simulate
