#include "strategy/ring/plan.h"

#include <algorithm>

#include "base/option.h"
#include "model/network/network.h"
#include "strategy/ring/pass.h"

namespace freshet::strategy::ring {
namespace {

using model::network::Graph;

Result<void> Check(const StrategyOptions& options, const Graph* graph) {
  if (graph == nullptr)
    return Error{Code::kInvalid, Str(Option("strategy"),
                                     " ring runs the layers of a network itself, and here only the time that they "
                                     "would take is known; simulate another strategy")};
  if (options.accumulate > 1)
    return Error{Code::kInvalid, Str(Option("accumulate"), " ", options.accumulate, " does not go with ",
                                     Option("strategy"), " ring, which computes its updates in micro-batches; use ",
                                     Option("micro"), " ", options.accumulate)};
  if (options.micro > options.batch)
    return Error{Code::kInvalid, Str(Option("micro"), " ", options.micro, " micro-batches of ", Option("batch"), " ",
                                     options.batch, ": some would have no row; give at most as many as rows")};
  const bool stash = options.pipeline == "stash";
  if (stash && (options.recompute || options.balance))
    return Error{Code::kInvalid,
                 Str(Option(options.recompute ? "recompute" : "balance"), " does not go with ", Option("pipeline"),
                     " stash, of which micro-batches are always under way; use 1f1b")};
  return {};
}

// That there are places for all messages.
Result<void> CheckEdges(const Graph& graph, const std::vector<StageCut>& cut) {
  if (cut.size() > kMostStages)
    return Error{Code::kInvalid, Str(cut.size(), " stages: a ring has at most ", kMostStages)};
  for (const StageCut& stage : cut)
    if (stage.enters.size() > kMostTensors)
      return Error{Code::kInvalid,
                   Str("before layer ", Quoted(graph.layers[static_cast<std::size_t>(stage.first)].name),
                       " the network would be cut through ", stage.enters.size(), " tensors, and at most ",
                       kMostTensors, " can cross; use another number of workers or of ", Option("stages"))};
  return {};
}

}  // namespace

std::uint64_t UsualMicros(std::uint64_t batch, int members) {
  constexpr std::uint64_t kOfEach = 4, kLeastRows = 4;
  const auto ring = static_cast<std::uint64_t>(members);
  const std::uint64_t most = std::max<std::uint64_t>(batch / kLeastRows, 1);
  if (most < ring) return most;
  return std::min(kOfEach * ring, most / ring * ring);  // whole groups, for those that are interleaved
}

Result<int> StagesEach(const StrategyOptions& options, int members) {
  const Order order = TRY(OrderOf(options.pipeline));
  const bool interleaved = order == Order::kInterleaved;
  const int stages = options.stages != 0 ? options.stages : interleaved ? 2 : 1;
  if (stages < 1) return Error{Code::kInvalid, Str(Option("stages"), " ", stages, ": expected at least 1")};
  if ((order == Order::kOneByOne || order == Order::kStash) && stages > 1)
    return Error{Code::kInvalid, Str(Option("stages"), " ", stages, " is for ", Option("pipeline"),
                                     " interleaved or flush; with ", options.pipeline, " each member holds one")};
  if (interleaved && stages < 2)
    return Error{Code::kInvalid, Str(Option("pipeline"), " interleaved is for ", Option("stages"),
                                     " 2 or more; with one stage for each member use 1f1b")};
  return members == 1 ? 1 : stages;  // nothing is gained by cutting what lies with one
}

Result<Plan> MakePlan(const StrategyOptions& options, const Strategy::World& world) {
  const Graph* const graph = model::network::GraphOf(world.model);
  TRY(Check(options, graph));
  const fabric::Fabric& fabric = world.collectives.fabric();
  const model::network::Backend& backend = model::network::BackendOf(world.model);
  Plan plan;
  plan.facts = TRY(model::network::Infer(*graph));
  plan.order = TRY(OrderOf(options.pipeline));
  plan.stages_each = TRY(StagesEach(options, fabric.size()));
  plan.micros = static_cast<std::size_t>(options.micro > 0 ? options.micro : UsualMicros(options.batch, fabric.size()));
  const auto rows = static_cast<std::size_t>(options.batch);
  plan.micro_rows = (rows + plan.micros - 1) / plan.micros;
  const CutOptions how{fabric.size(), plan.stages_each, rows, plan.micros};
  plan.places = Places(*graph, plan.facts, backend, how);
  const std::vector<StageCut> cut = TRY(CutNetwork(*graph, plan.facts, backend, how));
  TRY(CheckEdges(*graph, cut));
  const auto members = static_cast<std::size_t>(fabric.size());
  for (auto s = static_cast<std::size_t>(fabric.rank()); s < cut.size(); s += members)
    plan.held.push_back(cut[s].layers());
  TRY(MakeStages(options, world, plan));
  return plan;
}

Result<void> CheckCut(const StrategyOptions& options, const model::Model& model, int members) {
  const Graph* const graph = model::network::GraphOf(model);
  TRY(Check(options, graph));
  const CutOptions how{members, TRY(StagesEach(options, members)), static_cast<std::size_t>(options.batch),
                       static_cast<std::size_t>(options.micro)};
  return CheckEdges(*graph,
                    TRY(CutNetwork(*graph, TRY(model::network::Infer(*graph)), model::network::BackendOf(model), how)));
}

Result<void> MakeStages(const StrategyOptions& options, const Strategy::World& world, Plan& plan) {
  const Graph& graph = *model::network::GraphOf(world.model);
  const model::network::Backend& backend = model::network::BackendOf(world.model);
  std::vector<Stage> stages;
  for (std::size_t s = 0; s < plan.held.size(); ++s) {
    const LayerRange& layers = plan.held[s];
    if (s < plan.stages.size() && plan.stages[s].layers() == layers) {
      stages.push_back(std::move(plan.stages[s]));
      continue;
    }
    const std::size_t last = plan.places.PlaceOf(layers.last);
    stages.push_back(TRY(Stage::Make(graph,
                                     {plan.places.Between(plan.places.PlaceOf(layers.first), last),
                                      plan.places.At(last), options.threads, &backend, options.recompute},
                                     plan.micro_rows)));
  }
  plan.stages = std::move(stages);
  return {};
}

bool CanCross(const Plan& plan, std::size_t place) { return plan.places.At(place).size() <= kMostTensors; }

}  // namespace freshet::strategy::ring
