#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/option.h"
#include "chart.h"
#include "cluster_flags.h"
#include "ends_at_signals.h"
#include "results.h"
#include "simulate/simulation.h"
#include "table.h"
#include "train/belonging.h"
#include "verb.h"

namespace freshet::cli {
namespace {

using Json = nlohmann::ordered_json;
using fabric::sim::Platform;
using simulate::Outcome;
using simulate::Scenario;

struct Flags {
  ClusterFlags cluster;
  std::string nodes = "1..", servers = "0";
  std::uint64_t batch = 256, batch_per_node = 0;
  int workers_per_node = 1, steps = 3, slow_node = -1;
  double slow_times = 2;
  bool read = false, shared_disk = false, json = false, list = false;
  std::string svg, trace;
  int trace_ranks = 8;
  train::Together together;

  void Register(base::Settings& settings) {
    settings.Group("Where");
    cluster.RegisterCluster(settings);
    settings.Add("nodes", &nodes, "how many of its nodes: 16, or 1,8,64, or 1..64 (doubling)", {.value = "N"});
    settings.Add(
        "servers", &servers,
        "strategy server: so many nodes more, which have the parameters and no rows, as many ways as nodes (0: "
        "every worker serves, too)",
        {.value = "N"});
    settings.Add("workers-per-node", &workers_per_node, "that share its cores", {.value = "N", .least = 1});
    settings.Add("list", &list, "shows the platforms that are known by name, as files that could be changed");
    settings.Group("What");
    cluster.RegisterModel(settings);
    settings.Add("batch", &batch, "rows of an update, all workers together", {.letter = 'b', .value = "N", .least = 1});
    settings.Add("batch-per-node", &batch_per_node, "instead, rows of an update for each node", {.value = "N"});
    settings.Add("steps", &steps, "that are simulated, after a first one", {.value = "N", .least = 1, .most = 1000});
    settings.Group("How");
    together.RegisterExchange(settings);
    settings.Group("What else");
    settings.Add("read", &read, "rows are read, a byte for each number, ahead of what computes");
    settings.Add("shared-disk", &shared_disk, "from the file system of all nodes, else from each node's disk");
    settings.Add("slow-node", &slow_node, "a node that computes slower than the others", {.value = "N", .least = -1});
    settings.Add("slow-times", &slow_times, "so many times as slow", {.value = "X", .least = 1});
    settings.Group("Results");
    settings.Add("svg", &svg, "draws the speed-up", {.value = "FILE"});
    settings.Add("trace", &trace, "what ranks did when, with the most nodes, for Perfetto or chrome://tracing",
                 {.value = "FILE"});
    settings.Add("trace-ranks", &trace_ranks, "of how many ranks", {.value = "N", .least = 1});
    settings.Add("json", &json, "results as one JSON object");
  }
};

// Numbers of something, as they were written.
struct Counts {
  const char* option;
  const std::string& text;

  Error Bad() const {
    return {Code::kInvalid, Str(Option(option), " ", Quoted(text), ": expected 16, or 1,8,64, or 1..64")};
  }
  Result<int> One(std::string_view part) const {
    int count = 0;
    const auto [end, problem] = std::from_chars(part.data(), part.data() + part.size(), count);
    if (problem != std::errc() || end != part.data() + part.size() || count < 1) return Bad();
    return count;
  }
  // Ascending. "1..64" is 1, 2, 4 and so on, and 64; without an end, up to 64 of as many as there are.
  Result<std::vector<int>> Read(const Platform& platform) const {
    std::vector<int> counts;
    if (const std::size_t dots = text.find(".."); dots != std::string::npos) {
      const int first = TRY(One(std::string_view(text).substr(0, dots)));
      const std::string_view end = std::string_view(text).substr(dots + 2);
      const int last = end.empty() ? std::min(platform.nodes, 64) : TRY(One(end));
      if (last < first) return Bad();
      for (int count = first; count < last; count *= 2) counts.push_back(count);
      counts.push_back(last);
    } else {
      for (const std::string_view part : Split(text, ',')) counts.push_back(TRY(One(part)));
      std::sort(counts.begin(), counts.end());
    }
    if (counts.back() > platform.nodes)
      return Error{Code::kInvalid, Str(Option(option), " ", text, ": ", platform.name, " has ", platform.nodes)};
    return counts;
  }
};

std::string Share(double part, double whole) { return Str(Fixed(whole > 0 ? 100 * part / whole : 0, 0), " %"); }

struct Row {
  int nodes = 1, servers = 0;
  std::uint64_t batch = 1;
  double speed_up = 1;
  Outcome outcome;
};

bool Served(const Flags& flags) { return flags.together.strategy.kind == "server"; }
std::string SynchronyOf(const Flags& flags) {
  const std::string& said = flags.together.strategy.synchrony;
  return said.empty() ? "bsp" : said;
}
bool SweepsServers(const std::vector<Row>& rows) { return rows.front().servers != rows.back().servers; }

// The number of servers of which more gain less than a tenth.
std::string Knee(const std::vector<Row>& rows) {
  for (std::size_t i = 1; i < rows.size(); ++i)
    if (rows[i].speed_up < 1.1 * rows[i - 1].speed_up)
      return Str("knee: ", rows[i - 1].servers, rows[i - 1].servers == 1 ? " server" : " servers", "; with ",
                 rows[i].servers, " it is less than a tenth faster\n");
  return Str("knee: none up to ", rows.back().servers, " servers\n");
}

// What an update is exchanged by.
std::string How(const Flags& flags) {
  const strategy::StrategyOptions& how = flags.together.strategy;
  if (Served(flags)) return Str("servers, ", SynchronyOf(flags));
  if (how.kind == "ring") return Str("ring, ", how.pipeline);
  return Str(how.kind, " by ", flags.together.topology, how.codec == "none" ? "" : Str(", ", how.codec),
             how.kind == "average" || how.kind == "groups" ? Str(", every ", how.every) : "");
}

std::string ToText(const std::vector<Row>& rows, const Flags& flags, const Platform& platform,
                   const simulate::Subject& subject) {
  std::vector<std::vector<std::string>> table = {{"nodes", "batch", "update", "rows/s", "speed-up", "efficient", "read",
                                                  "compute", "wait", "exchange", "apply", "sent", "bound by"}};
  if (Served(flags)) table[0].insert(table[0].begin() + 1, "servers");
  for (const Row& row : rows) {
    const strategy::StepTimes& times = row.outcome.times;
    const double total = times.total();
    table.push_back({Str(row.nodes), Str(row.batch), TimeText(row.outcome.step_seconds),
                     Fixed(row.outcome.rows_per_second, 1), Fixed(row.speed_up, 2),
                     Share(row.speed_up, SweepsServers(rows) ? row.servers : row.nodes), Share(times.read, total),
                     Share(times.compute, total), Share(times.wait, total), Share(times.exchange, total),
                     Share(times.apply, total), HumanBytes(row.outcome.bytes_per_update), row.outcome.Bottleneck()});
    if (Served(flags)) table.back().insert(table.back().begin() + 1, Str(row.servers));
  }
  std::string out =
      Str(subject.name, " (", HumanBytes(subject.parameter_bytes), " of parameters) on ", platform.name, ", ",
          flags.workers_per_node, flags.workers_per_node == 1 ? " worker" : " workers", " a node, ", How(flags), "\n",
          "time of an update and its parts, mean over workers; bytes that a worker sends for it\n\n", Table(table, 0));
  if (SweepsServers(rows)) out += Str("\n", Knee(rows));
  const Outcome& last = rows.back().outcome;
  if (last.links.empty()) return out;
  out += Str("\nbusiest links with ", rows.back().nodes, " nodes, of the time they could carry:\n");
  for (std::size_t i = 0; i < std::min<std::size_t>(last.links.size(), 3); ++i) {
    const auto& link = last.links[i];
    out += Str("  ", link.name, ": ", HumanBytes(link.bytes), ", ",
               Share(link.bytes / link.bytes_per_second, last.simulated_seconds), "\n");
  }
  return out;
}

Json ToJson(const std::vector<Row>& rows, const Flags& flags, const Platform& platform,
            const simulate::Subject& subject) {
  Json out = {{"schema", 1},
              {"platform", platform.name},
              {"model", subject.name},
              {"parameter_bytes", subject.parameter_bytes},
              {"workers_per_node", flags.workers_per_node},
              {"strategy", flags.together.strategy.kind},
              {"topology", flags.together.topology},
              {"codec", flags.together.strategy.codec},
              {"rows", Json::array()}};
  if (Served(flags)) out["synchrony"] = SynchronyOf(flags);
  for (const Row& row : rows) {
    const Outcome& o = row.outcome;
    Json links = Json::array();
    for (const fabric::sim::Flows::Link& link : o.links)
      links.push_back({{"name", link.name},
                       {"bytes", link.bytes},
                       {"busy", link.bytes / link.bytes_per_second / o.simulated_seconds}});
    out["rows"].push_back({{"nodes", row.nodes},
                           {"servers", row.servers},
                           {"batch", row.batch},
                           {"update_seconds", o.step_seconds},
                           {"rows_per_second", o.rows_per_second},
                           {"speed_up", row.speed_up},
                           {"efficiency", row.speed_up / (SweepsServers(rows) ? row.servers : row.nodes)},
                           {"read", o.times.read},
                           {"compute", o.times.compute},
                           {"wait", o.times.wait},
                           {"exchange", o.times.exchange},
                           {"apply", o.times.apply},
                           {"bytes_sent", o.bytes_per_update},
                           {"cores_busy", o.cores_busy},
                           {"bound_by", o.Bottleneck()},
                           {"letters", o.letters},
                           {"simulated_seconds", o.simulated_seconds},
                           {"links", links}});
  }
  return out;
}

std::vector<Line> Curves(const std::vector<Row>& rows) {
  Line measured{.name = "simulated", .points = {}}, ideal{.name = "ideal", .points = {}};
  for (const Row& row : rows) {
    const auto along = static_cast<double>(SweepsServers(rows) ? row.servers : row.nodes);
    measured.points.push_back({along, row.speed_up});
    ideal.points.push_back({along, along});
  }
  return {measured, ideal};
}
const char* Along(const std::vector<Row>& rows) { return SweepsServers(rows) ? "servers" : "nodes"; }

Result<void> List(Door& door) {
  std::string out;
  for (const std::string& name : Platform::KnownNames())
    out += Str("# ", name, ".toml\n", TRY(Platform::Known(name)).ToToml(), "\n");
  return Print(door.files, out);
}

Result<void> Run(Door& door, const Verb& verb, const std::vector<std::string>& arguments) {
  Flags flags;
  flags.together.topology = "ring";
  base::Settings settings;
  flags.Register(settings);
  if (!TRY(ParseArguments(door, verb, arguments, settings))) return {};
  if (flags.list) return List(door);
  TRY(train::CheckBelonging({flags.together}, flags.together.strategy.kind));
  if (!Served(flags) && flags.servers != "0")
    return Error{Code::kInvalid, Str(Option("servers"), " goes with ", Option("strategy"), " server, not with ",
                                     flags.together.strategy.kind, "; it would do nothing: leave it out")};
  std::optional<EndsAtSignals> ending(std::in_place, door);
  ClusterFlags::Found found = TRY(flags.cluster.Find(door));
  const std::vector<int> nodes = TRY((Counts{"nodes", flags.nodes}.Read(found.platform)));
  std::vector<int> servers = {0};
  if (Served(flags) && flags.servers != "0") servers = TRY((Counts{"servers", flags.servers}.Read(found.platform)));
  if (nodes.size() > 1 && servers.size() > 1)
    return Error{Code::kInvalid, Str("several numbers of ", Option("nodes"), " and of ", Option("servers"),
                                     " are no row; give one of either")};
  const ClusterFlags::Chosen chosen = TRY(flags.cluster.Choose(door, std::move(found), nodes.back() + servers.back()));
  const Platform& platform = chosen.platform;
  const simulate::Subject& subject = chosen.subject;
  if (flags.shared_disk && !(platform.shared_disk_gb_s > 0))
    return Error{Code::kInvalid, Str(Option("shared-disk"), ": ", platform.name, " has none (shared-disk-gb-s)")};

  std::vector<Row> rows;
  for (std::size_t i = 0; i < std::max(nodes.size(), servers.size()); ++i) {
    const int count = nodes[std::min(i, nodes.size() - 1)], serve = servers[std::min(i, servers.size() - 1)];
    TRY(door.GoOn());
    Scenario scenario;
    scenario.platform = platform;
    scenario.nodes = count;
    scenario.workers_per_node = flags.workers_per_node;
    scenario.strategy = flags.together.strategy;
    scenario.strategy.servers = serve;
    scenario.strategy.batch =
        flags.batch_per_node > 0 ? flags.batch_per_node * static_cast<std::uint64_t>(count) : flags.batch;
    scenario.collectives = TRY(flags.together.Collectives());
    scenario.steps = flags.steps;
    scenario.work = chosen.work;
    scenario.row_bytes = flags.read ? subject.row_bytes : 0;
    scenario.shared_disk = flags.shared_disk;
    scenario.slow_node = flags.slow_node;
    scenario.slow_times = flags.slow_times;
    if (!flags.trace.empty() && count == nodes.back() && serve == servers.back()) scenario.traced = flags.trace_ranks;
    Row row{.nodes = count, .servers = serve, .batch = scenario.strategy.batch, .speed_up = 1, .outcome = {}};
    row.outcome = TRY(simulate::Simulate(scenario, *subject.model, *chosen.costs, *chosen.flows)
                          .While(Str("simulating ", count, " nodes")));
    const Row& first = rows.empty() ? row : rows.front();
    row.speed_up = (servers.size() > 1 ? first.servers : first.nodes) * row.outcome.rows_per_second /
                   first.outcome.rows_per_second;
    rows.push_back(std::move(row));
    door.log.Info("simulated", "nodes", count, "servers", serve, "letters", rows.back().outcome.letters);
  }
  ending.reset();
  TRY(door.GoOn());
  if (!flags.trace.empty()) {
    const std::string events = Str("{\"traceEvents\":[", rows.back().outcome.trace, "]}\n");
    TRY(base::WriteAtomic(door.files, flags.trace, [&](base::OutputFile& file) { return file.Write(events); }));
  }
  if (!flags.svg.empty()) {
    const std::string picture =
        SvgChart(Str(subject.name, " on ", platform.name, ", ", How(flags)), Curves(rows), Along(rows), "speed-up");
    TRY(base::WriteAtomic(door.files, flags.svg, [&](base::OutputFile& file) { return file.Write(picture); }));
  }
  if (flags.json) return Print(door.files, JsonLine(ToJson(rows, flags, platform, subject)));
  std::string out = ToText(rows, flags, platform, subject);
  if (rows.size() > 2) out += "\nspeed-up\n" + TerminalChart(Curves(rows), Along(rows));
  return Print(door.files, out);
}

}  // namespace

extern const Verb kSimulate = {
    "simulate", "how training would scale on a cluster that is only described", "--platform NAME [FLAGS]",
    "  freshet simulate --platform marenostrum3 --nodes 1..64 --model googlenet --batch 1024\n"
    "  freshet simulate --platform ethernet-10g --nodes 1..128 --model alexnet --batch-per-node 64 --codec int8\n"
    "  freshet simulate --platform laptop-cluster --nodes 1..8 --model lenet5 --strategy average --topology central\n"
    "  freshet simulate --platform ethernet-10g --nodes 256 --servers 1..64 --model alexnet --batch-per-node 32 \\\n"
    "      --strategy server --synchrony bsp\n"
    "  freshet simulate --calibration here.json --workers-per-node 2 --model lenet5 --batch 64\n"
    "  freshet simulate --list                         the platforms, to be changed and given as a file\n",
    Run};

}  // namespace freshet::cli
