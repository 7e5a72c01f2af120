#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/option.h"
#include "chart.h"
#include "cluster_flags.h"
#include "fabric/sim/star_flows.h"
#include "results.h"
#include "table.h"
#include "train/belonging.h"
#include "train/comparison.h"
#include "verb.h"

namespace freshet::cli {
namespace {

using Json = nlohmann::ordered_json;
using train::Course;

struct Flags {
  train::Job job;
  std::string strategies = "bsp,ssp:3,asp:0.01,bap,allreduce,average:8,gossip";
  int workers = 4;  // where the job does not say how many
  std::string straggler, platform, svg;
  double row_us = 0;
  bool json = false, quiet = false;

  void Register(base::Settings& settings) {
    settings.Group("Who");
    settings.Add("strategies", &strategies,
                 "bsp, ssp:N, asp:X, bap (of a parameter server), allreduce, allreduce:TOPOLOGY, average:N, groups:N, "
                 "groups:N:MODE (through a server), gossip, gossip:HOW, ring; bsp+N and allreduce+N do not wait for "
                 "the N slowest",
                 {.value = "A,B"});
    settings.Add("straggler", &straggler,
                 "who is slow: 2x@1 (rank 1 takes twice as long), 4x/10 (each four times as long in one step of ten)",
                 {.value = "WHO"});
    settings.Group("Where");
    settings.Add("platform", &platform,
                 Str("in simulated time on a cluster by name (", Join(fabric::sim::Platform::KnownNames(), ", "),
                     ") or a .toml file, one worker a node; else on threads of this process"),
                 {.value = "NAME"});
    settings.Add("row-us", &row_us, "simulated: microseconds that computing a row takes (0: as measured here)",
                 {.value = "X", .least = 0, .most = 1e9});
    settings.Group("Results");
    settings.Add("svg", &svg, "draws loss against time, epochs and bytes: FILE, and FILE with -epochs and -bytes",
                 {.value = "FILE"});
    settings.Add("json", &json, "results as one JSON object, with curves");
    settings.Add("quiet", &quiet, "no progress");
    job.Register(settings);
  }
};

// The loss of rows before they were learned from, as the mean of each of some stretches of the way.
std::vector<Point> CurveOf(const Course& course, double Course::Moment::*along) {
  constexpr std::size_t kPoints = 48;
  std::vector<Point> points;
  double loss = 0, rows = 0;
  for (std::size_t i = 0; i < course.moments.size(); ++i) {
    const Course::Moment& moment = course.moments[i];
    loss += moment.loss;
    rows += moment.rows;
    if ((i + 1) * kPoints / course.moments.size() == i * kPoints / course.moments.size() || rows == 0) continue;
    points.push_back({moment.*along, loss / rows});
    loss = rows = 0;
  }
  return points;
}

double LossOf(const Course& course) {
  return course.report.held_out ? course.report.held_out->loss() : course.report.last_epoch.loss();
}

// How long it took until the mean loss over a twentieth of all its steps was this low; nothing when it never was.
std::optional<double> SecondsTo(const Course& course, double goal) {
  const std::size_t window = std::max<std::size_t>(course.moments.size() / 20, 1);
  double loss = 0, rows = 0;
  for (std::size_t i = 0; i < course.moments.size(); ++i) {
    loss += course.moments[i].loss;
    rows += course.moments[i].rows;
    if (i >= window) {
      loss -= course.moments[i - window].loss;
      rows -= course.moments[i - window].rows;
    }
    if (i + 1 >= window && rows > 0 && loss <= goal * rows) return course.moments[i].seconds;
  }
  return std::nullopt;
}

// The loss that all should reach: that of the first at the end of its way, and a hundredth more.
double GoalOf(const Course& course) {
  const std::size_t window = std::max<std::size_t>(course.moments.size() / 20, 1);
  double loss = 0, rows = 0;
  for (std::size_t i = course.moments.size() - window; i < course.moments.size(); ++i) {
    loss += course.moments[i].loss;
    rows += course.moments[i].rows;
  }
  return rows > 0 ? 1.01 * loss / rows : 0;
}

struct Drawn {
  const char* suffix;
  double Course::Moment::*along;
  const char* name;
};
constexpr Drawn kDrawn[] = {{"", &Course::Moment::seconds, "seconds"},
                            {"-epochs", &Course::Moment::epochs, "epochs"},
                            {"-bytes", &Course::Moment::bytes, "bytes sent by the first worker"}};

std::vector<Line> LinesOf(const std::vector<Course>& courses, double Course::Moment::*along) {
  std::vector<Line> lines;
  for (const Course& course : courses) lines.push_back({course.name, CurveOf(course, along)});
  return lines;
}

Result<void> Draw(Door& door, const Flags& flags, const std::vector<Course>& courses) {
  if (flags.svg.empty()) return {};
  const std::string stem = flags.svg.ends_with(".svg") ? flags.svg.substr(0, flags.svg.size() - 4) : flags.svg;
  for (const Drawn& each : kDrawn)
    TRY(base::WriteAtomic(door.files, Str(stem, each.suffix, ".svg"), [&](base::OutputFile& file) {
      return file.Write(SvgChart(Str(flags.workers, " workers", flags.straggler.empty() ? "" : ", ", flags.straggler),
                                 LinesOf(courses, each.along), each.name, "loss on rows not learned yet"));
    }));
  return {};
}

std::string ToText(const Flags& flags, const std::vector<Course>& courses) {
  const double goal = GoalOf(courses.front());
  std::vector<std::vector<std::string>> table = {
      {"strategy", "time", "to the goal", "loss", "compute", "wait", "exchange", "sent"}};
  for (const Course& course : courses) {
    strategy::StepTimes sum;
    for (const train::WorkerReport& worker : course.workers) {
      sum.compute += worker.times.compute + worker.times.apply;
      sum.wait += worker.times.wait;
      sum.exchange += worker.times.exchange;
    }
    const double total = std::max(sum.total(), 1e-12);
    const auto share = [&](double part) { return Str(Fixed(100 * part / total, 0), " %"); };
    const auto reached = SecondsTo(course, goal);
    table.push_back({course.name, TimeText(course.seconds), reached ? TimeText(*reached) : "never",
                     Fixed(LossOf(course), 4), share(sum.compute), share(sum.wait), share(sum.exchange),
                     HumanBytes(static_cast<double>(course.bytes))});
  }
  return Str(flags.workers, " workers",
             flags.platform.empty() ? " as threads of this process" : Str(" on ", flags.platform, ", simulated"),
             flags.straggler.empty() ? "" : Str(", slow: ", flags.straggler), "\ngoal         loss ", Fixed(goal, 4),
             " on rows not learned yet, as ", courses.front().name, " has it at the end, and 1 %\nloss         ",
             courses.front().report.held_out ? "of the rows held out" : "of the last epoch", "\n\n", Table(table, 1),
             "\n", TerminalChart(LinesOf(courses, &Course::Moment::seconds), "seconds"));
}

Json ToJson(const Flags& flags, const std::vector<Course>& courses) {
  const double goal = GoalOf(courses.front());
  Json out = {{"schema", 1}, {"workers", flags.workers}, {"goal", goal}, {"courses", Json::array()}};
  if (!flags.platform.empty()) out["platform"] = flags.platform;
  if (!flags.straggler.empty()) out["straggler"] = flags.straggler;
  for (const Course& course : courses) {
    Json json = {{"strategy", course.name},
                 {"seconds", course.seconds},
                 {"loss", LossOf(course)},
                 {"rows", course.report.rows},
                 {"bytes", course.bytes}};
    if (const auto reached = SecondsTo(course, goal)) json["seconds_to_goal"] = *reached;
    for (const Drawn& each : kDrawn) {
      Json& curve = json["curves"][std::string(each.name).substr(0, std::string(each.name).find(' '))] = Json::array();
      for (const Point& point : CurveOf(course, each.along)) curve.push_back({point.x, point.y});
    }
    out["courses"].push_back(std::move(json));
  }
  return out;
}

// What is said of all is used by one of them at least.
Result<void> CheckOptions(const base::Settings& settings, const Flags& flags,
                          const std::vector<train::Contender>& contenders) {
  for (const char* const own : {"strategy", "synchrony", "backup"})
    if (settings.Given(own))
      return Error{Code::kInvalid,
                   Str(Option(own), ": ", Option("strategies"), " says it of each, as in ssp:3,bsp+1; leave it out")};
  for (const train::Contender& contender : contenders)
    if (contender.backup >= flags.workers)
      return Error{Code::kInvalid, Str(Option("strategies"), " ", contender.name, ": of ", flags.workers,
                                       " workers at most ", flags.workers - 1, " need not be waited for")};
  std::vector<train::Together> ways;
  for (const train::Contender& contender : contenders) contender.Enter(ways.emplace_back(flags.job.together));
  return train::CheckBelonging(ways, flags.strategies);
}

Result<void> Run(Door& door, const Verb& verb, const std::vector<std::string>& arguments) {
  Flags flags;
  base::Settings settings;
  flags.Register(settings);
  if (!TRY(ParseArguments(door, verb, arguments, settings))) return {};
  if (const int said = std::exchange(flags.job.together.workers, 0); said > 0) flags.workers = said;
  if (flags.workers < 2)
    return Error{Code::kInvalid,
                 Str(Option("workers"), " ", flags.workers, " has nobody to work with; give 2 or more")};
  if (!flags.job.checkpoint.empty() || !flags.job.cache.empty())
    return Error{Code::kInvalid, Str(Option("checkpoint"), " and ", Option("cache"),
                                     " are for one training, and these are several; leave them out")};
  std::vector<train::Contender> contenders;
  for (const std::string_view name : Split(flags.strategies, ','))
    contenders.push_back(TRY(train::Contender::Parse(Trim(name))));
  TRY(CheckOptions(settings, flags, contenders));
  if (flags.job.batch == 0) flags.job.batch = 16 * static_cast<std::uint64_t>(flags.workers);
  if (!flags.svg.empty()) TRY(CheckPlaceFor(door.files, flags.svg));
  train::RowPrice price(flags.row_us * 1e-6);
  train::Arena arena{.workers = flags.workers,
                     .straggler = TRY(train::Straggler::Parse(flags.straggler)),
                     .row_price = price,
                     .platform = nullptr,
                     .flows = nullptr};
  if (arena.straggler.rank >= flags.workers)
    return Error{Code::kInvalid, Str(Option("straggler"), " ", flags.straggler, ": of ", flags.workers,
                                     " workers the last is rank ", flags.workers - 1)};
  std::optional<fabric::sim::Platform> platform;
  std::unique_ptr<fabric::sim::Flows> flows;
  if (!flags.platform.empty()) {
    ClusterFlags cluster;
    cluster.platform = flags.platform;
    platform = TRY(cluster.Find(door)).platform;
    flows = TRY(cluster.FlowsOf(door, *platform, flags.workers));
    arena.platform = &*platform;
    arena.flows = flows.get();
  }
  base::ThreadPool pool(1);
  const base::Env env = door.env(pool);
  std::vector<Course> courses;
  for (const train::Contender& contender : contenders) {
    TRY(door.GoOn());
    if (!flags.quiet) door.log.Info("running", "strategy", contender.name);
    courses.push_back(
        TRY(train::RunCourse(env, flags.job, contender, arena, &door.stop).While(Str("training by ", contender.name))));
  }
  TRY(Draw(door, flags, courses));
  return Print(door.files, flags.json ? JsonLine(ToJson(flags, courses)) : ToText(flags, courses));
}

}  // namespace

const Verb kCompare = {
    "compare", "ways of training together, side by side: loss against time, epochs and bytes", "[options] FILE...",
    "  freshet compare a9a --epochs 3 --straggler 4x/10 --svg ways.svg\n"
    "  freshet compare covtype.data --positive 2 --strategies bsp,ssp:3,bap --workers 8 --platform wan\n",
    Run};

}  // namespace freshet::cli
