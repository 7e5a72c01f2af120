#include <nlohmann/json.hpp>

#include "base/option.h"
#include "cluster_flags.h"
#include "ends_at_signals.h"
#include "fabric/codecs/codec.h"
#include "results.h"
#include "simulate/plan.h"
#include "table.h"
#include "train/belonging.h"
#include "verb.h"

namespace freshet::cli {
namespace {

using Json = nlohmann::ordered_json;
using simulate::Candidate;

struct Flags {
  ClusterFlags cluster;
  int nodes = 0, every = 16, group = 2, steps = 2, show = 10;
  std::uint64_t batch = 256;
  std::vector<std::string> strategies = {"allreduce", "slices"}, codecs = {"none"}, topologies, workers = {"1", "2"};
  bool exhaustive = false, json = false;

  void Register(base::Settings& settings) {
    settings.Group("Where");
    cluster.RegisterCluster(settings);
    settings.Add("nodes", &nodes, "of its nodes that are used (0: all, at most 64)", {.value = "N", .least = 0});
    settings.Group("What");
    cluster.RegisterModel(settings);
    settings.Add("batch", &batch, "rows of an update, all workers together: as many as accuracy allows",
                 {.letter = 'b', .value = "N", .least = 1});
    settings.Group("What may be chosen");
    settings.Add(
        "strategies", &strategies,
        "ways in which updates meet; averaging learns another model than all-reduce, slices, where they pay, the same",
        {.value = "NAME", .choices = strategy::Strategy::Kinds(), .commas = true});
    std::vector<std::string> names = fabric::Codec::Names();
    names.emplace_back("power");
    settings.Add("codecs", &codecs, "forms in which gradients may travel; all but none lose a little",
                 {.value = "NAME", .choices = names, .commas = true});
    settings.Add("topologies", &topologies, "how sums may travel (any, if not given)",
                 {.value = "NAME", .choices = fabric::AlgorithmNames(), .commas = true});
    settings.Add("workers-per-node", &workers, "workers that may share a node", {.value = "N", .commas = true});
    settings.Add("every", &every, "average, groups: updates between two averages", {.value = "N", .least = 1});
    settings.Add("group", &group, "groups: workers of a group", {.value = "N", .least = 1});
    settings.Group("Search");
    settings.Add("exhaustive", &exhaustive, "tries everything, not only codecs and buckets of the four best");
    settings.Add("steps", &steps, "that are simulated of each, after a first one", {.value = "N", .least = 1});
    settings.Group("Results");
    settings.Add("show", &show, "how many are shown", {.value = "N", .least = 1});
    settings.Add("json", &json, "all of them, as one JSON object");
  }

  Result<simulate::Choices> Choices() const {
    simulate::Choices choices;
    choices.strategies = strategies;
    choices.codecs = codecs;
    if (!topologies.empty()) choices.topologies.clear();
    for (const std::string& name : topologies) {
      if (name == "auto" || name == "native")
        return Error{Code::kInvalid, Str(Option("topologies"), " ", name, ": expected those that have a shape")};
      choices.topologies.push_back(TRY(fabric::AlgorithmOf(name)));
    }
    choices.workers_per_node.clear();
    for (const std::string& text : workers) {
      const std::vector<int> parts = fabric::sim::PartsOf(text, ',');
      if (parts.size() != 1)
        return Error{Code::kInvalid,
                     Str(Option("workers-per-node"), " ", Quoted(text), ": expected numbers, like 1,2,4")};
      choices.workers_per_node.push_back(parts[0]);
    }
    return choices;
  }
};

std::string ToText(const std::vector<Candidate>& all, const Flags& flags, const ClusterFlags::Chosen& chosen,
                   int nodes) {
  std::vector<std::vector<std::string>> table = {{"", "how", "update", "rows/s", "sent", "loses by"}};
  const std::size_t shown = std::min<std::size_t>(all.size(), static_cast<std::size_t>(flags.show));
  for (std::size_t i = 0; i < shown; ++i) {
    const Candidate& one = all[i];
    table.push_back({Str(i + 1), one.Name(), TimeText(one.outcome.step_seconds), Fixed(one.outcome.rows_per_second, 1),
                     HumanBytes(one.outcome.bytes_per_update),
                     i == 0 ? Str("bound by ", one.outcome.Bottleneck()) : one.Why(all[0])});
  }
  return Str(chosen.subject.name, " on ", nodes, " nodes of ", chosen.platform.name, ", batch ", flags.batch, ": ",
             all.size(), " ways were simulated\n\n", Table(table, 2));
}

Json ToJson(const std::vector<Candidate>& all, const Flags& flags, const ClusterFlags::Chosen& chosen, int nodes) {
  Json out = {{"schema", 1},
              {"platform", chosen.platform.name},
              {"model", chosen.subject.name},
              {"nodes", nodes},
              {"batch", flags.batch},
              {"plans", Json::array()}};
  for (const Candidate& one : all)
    out["plans"].push_back({{"strategy", one.scenario.strategy.kind},
                            {"topology", NameOf(one.scenario.collectives.algorithm)},
                            {"codec", one.scenario.strategy.codec},
                            {"bucket", one.scenario.strategy.bucket_bytes},
                            {"workers_per_node", one.scenario.workers_per_node},
                            {"update_seconds", one.outcome.step_seconds},
                            {"rows_per_second", one.outcome.rows_per_second},
                            {"bound_by", one.outcome.Bottleneck()}});
  return out;
}

Result<void> Run(Door& door, const Verb& verb, const std::vector<std::string>& arguments) {
  Flags flags;
  base::Settings settings;
  flags.Register(settings);
  if (!TRY(ParseArguments(door, verb, arguments, settings))) return {};
  const EndsAtSignals ending(door);
  ClusterFlags::Found found = TRY(flags.cluster.Find(door));
  const int nodes = flags.nodes > 0 ? flags.nodes : std::min(found.platform.nodes, 64);
  if (nodes > found.platform.nodes)
    return Error{Code::kInvalid,
                 Str(Option("nodes"), " ", nodes, ": ", found.platform.name, " has ", found.platform.nodes)};
  const simulate::Choices choices = TRY(flags.Choices());
  std::vector<train::Together> ways(flags.strategies.size());
  for (std::size_t i = 0; i < ways.size(); ++i) {
    ways[i].strategy.kind = flags.strategies[i];
    ways[i].strategy.every = static_cast<std::uint64_t>(flags.every);
    ways[i].strategy.group = flags.group;
  }
  if (!ways.empty()) TRY(train::CheckBelonging(ways, Join(flags.strategies, ", ")));
  const ClusterFlags::Chosen chosen = TRY(flags.cluster.Choose(door, std::move(found), nodes));
  simulate::Scenario base;
  base.platform = chosen.platform;
  base.nodes = nodes;
  base.steps = flags.steps;
  base.work = chosen.work;
  base.strategy.batch = flags.batch;
  base.strategy.every = static_cast<std::uint64_t>(flags.every);
  base.strategy.group = flags.group;
  const auto search = flags.exhaustive ? simulate::Search::kExhaustive : simulate::Search::kStaged;
  const std::vector<Candidate> all = TRY(simulate::Plan(base, choices, search, *chosen.subject.model, *chosen.costs,
                                                        *chosen.flows, [&] { return door.GoOn(); }));
  if (flags.json) return Print(door.files, JsonLine(ToJson(all, flags, chosen, nodes)));
  return Print(door.files, ToText(all, flags, chosen, nodes));
}

}  // namespace

extern const Verb kPlan = {
    "plan", "which way of training together would be the fastest on a cluster", "--platform NAME [FLAGS]",
    "  freshet plan --platform ethernet-10g --nodes 16 --model alexnet --batch 512 --codecs none,fp16,int8\n"
    "  freshet plan --platform laptop-cluster --model lenet5 --strategies allreduce,average --every 8\n"
    "  freshet plan --calibration here.json --nodes 1 --workers-per-node 1,2,4 --model lenet5 --batch 64\n",
    Run};

}  // namespace freshet::cli
