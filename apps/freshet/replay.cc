#include <algorithm>

#include "chart.h"
#include "data/open.h"
#include "deploy/recipe.h"
#include "deploy/replay/tune.h"
#include "deploy_flags.h"
#include "replay_view.h"
#include "train/learning.h"
#include "verb.h"

namespace freshet::cli {
namespace {

using deploy::Method;

struct ReplayFlags {
  data::Input input;
  train::Learning learning{.use = train::Learning::Use::kReplay};
  deploy::ReplayOptions replay;
  std::string method, compare = "baseline,baseline+,velox,continuous,static";
  std::string order = "auto", recipe = "auto", answers = "continuous";
  std::string curve, report, config;
  std::int64_t test_rows = -1;
  int threads = 0, workers = 1, retrain_epochs = 0;
  bool json = false, quiet = false, tune = false;

  void Register(base::Settings& settings);
};

void ReplayFlags::Register(base::Settings& settings) {
  deploy::DeploymentOptions& deployment = replay.deployment;
  replay.initial_epochs = 0;
  deployment.schedule.max_buffer_size = 0;
  settings.Group("Result");
  settings.Add("json", &json, "results as one JSON object, with curves");
  settings.Add("curve", &curve, "draw the errors over time into this SVG file, and below the results",
               {.value = "FILE"});
  settings.Add("report", &report, "also write that JSON object into this file", {.value = "FILE"});
  settings.Add("quiet", &quiet, "no progress");
  settings.Add("threads", &threads, "runs at once (0: one on every core)", {.value = "N", .least = 0, .most = 1024});
  settings.Add("config", &config, "read settings from this TOML file", {.value = "FILE"});
  input.Register(settings, data::Input::Use::kTraining);
  settings.Group("Stream");
  settings.Add("order", &order, "of arrival (auto: ratings by time, others as they come)",
               {.value = "WHICH", .choices = {"auto", "file", "time", "shuffle"}});
  settings.Add("initial", &replay.course.initial,
               "share of the rows that trains the first model (0: it begins with nothing)",
               {.value = "X", .least = 0, .most = 1});
  settings.Add("initial-epochs", &replay.initial_epochs, "passes over them (0: 12 for factorization, 2 for others)",
               {.value = "N", .least = 0});
  settings.Add("test-rows", &test_rows,
               "rows to test on and never train on (-1: ratings 5 %, others none: each arrival is a test)",
               {.value = "N", .least = -1});
  settings.Add("test-every", &replay.test_every, "test rows from one evaluation to the next",
               {.value = "N", .least = 1});
  settings.Add("seeds", &replay.seeds, "runs of every method, with the seeds seed, seed+1, …",
               {.value = "N", .least = 1, .most = 1000});
  settings.Group("Methods");
  settings.Add("compare", &compare, "methods to compare", {.value = "A,B"});
  settings.Add("method", &method, "one method alone", {.value = "NAME", .choices = deploy::MethodNames()});
  settings.Add("buffer", &deployment.schedule.max_buffer_size,
               "continuous: arrivals from one iteration to the next (0: a two-hundredth of all)", {.value = "N"});
  RegisterIterations(settings, recipe, deployment);
  settings.Add("drift-answer", &answers, "who does so", {.value = "WHO", .choices = {"continuous", "all"}});
  settings.Add("adaptive", &deployment.data.rate.adaptive, "after a drift: lower the sampling rate for a while");
  settings.Add("half-life", &deployment.data.sampler.half_life,
               "share of the past after which a row counts half (samplers recent and hard)", {.value = "X"});
  settings.Add("retrain-every", &deployment.retrain_rows,
               "velox: arrivals from one retraining to the next (0: five times in all)", {.value = "N"});
  settings.Add("retrain-epochs", &retrain_epochs, "velox: passes of a retraining (0: as the initial training)",
               {.value = "N", .least = 0});
  settings.Add("retrain-error", &deployment.retrain_error,
               "velox: retrain when the recent error is so many times the one after the last (0: by count)",
               {.value = "X", .least = 0});
  settings.Add("workers", &workers, "processes that train together", {.value = "N", .least = 1});
  settings.Group("Model");
  learning.RegisterModel(settings);
  settings.Group("Learning");
  learning.RegisterLearning(settings);
  settings.Add("tune", &tune, "choose rate, l2 and epochs that are not given by the initial part of the rows");
}

Result<std::vector<Method>> Methods(const ReplayFlags& flags) {
  std::vector<Method> methods;
  const std::string& text = flags.method.empty() ? flags.compare : flags.method;
  for (const std::string_view name : Split(text, ',')) {
    const Method method = TRY(deploy::ParseMethod(Trim(name)));
    if (std::find(methods.begin(), methods.end(), method) == methods.end()) methods.push_back(method);
  }
  return methods;
}

// The recipe's settings, but for those that were given.
Result<void> ApplyRecipe(const base::Settings& settings, ReplayFlags& flags) {
  deploy::DeploymentOptions& options = flags.replay.deployment;
  const deploy::DeploymentOptions given = options;
  const model::Traits traits = TRY(model::Model::Make(flags.replay.model))->traits();
  if (flags.recipe == "auto") flags.recipe = deploy::RecipeFor(traits);
  TRY(deploy::UseRecipe(flags.recipe, traits, options));
  if (settings.Given("sampler")) options.data.sampler.kind = given.data.sampler.kind;
  if (settings.Given("per-arrival")) options.data.per_arrival = given.data.per_arrival;
  if (settings.Given("sampling-rate")) options.data.rate.rate = given.data.rate.rate;
  if (settings.Given("buffer-share")) options.data.buffer_share = given.data.buffer_share;
  if (settings.Given("iteration-scale")) options.iteration_scale = given.iteration_scale;
  if (settings.Given("drift")) options.drift = given.drift;
  if (settings.Given("drift-keep")) options.drift_keep = given.drift_keep;
  if (settings.Given("drift-forget")) options.drift_forget = given.drift_forget;
  return {};
}

// Fills what depends on the data.
Result<void> Settle(Door& door, const base::Settings& settings, ReplayFlags& flags, const deploy::Feed& feed) {
  deploy::ReplayOptions& replay = flags.replay;
  const data::Description& description = feed.description;
  flags.learning.SettleDefaults(description);
  if (flags.learning.schedule == "auto") flags.learning.schedule = "constant";
  const bool factorization = flags.learning.model == "factorization";
  if (flags.test_rows < 0) flags.test_rows = factorization ? static_cast<std::int64_t>(feed.size() / 20) : 0;
  replay.methods = TRY(Methods(flags));
  replay.course.order = TRY(deploy::ParseOrder(flags.order));
  replay.course.test_rows = static_cast<std::uint64_t>(flags.test_rows);
  replay.model = TRY(flags.learning.Config(description, door.log));
  replay.deployment.optimizer = flags.learning.Optimizer();
  replay.seed = flags.learning.seed;
  replay.scale_target = flags.input.scale_target;
  replay.all_answer_drift = flags.answers == "all";
  std::uint64_t& buffer = replay.deployment.schedule.max_buffer_size;
  if (buffer == 0) buffer = std::max<std::uint64_t>(1, feed.size() / 200);
  const bool epochs_given = replay.initial_epochs > 0;
  if (!epochs_given) replay.initial_epochs = factorization ? 12 : 2;
  if (flags.tune) {
    const deploy::Tuning tuning = TRY(deploy::Tune(replay, feed));
    if (!settings.Given("rate")) flags.learning.rate = tuning.rate;
    if (!settings.Given("l2")) flags.learning.l2 = tuning.l2;
    if (!epochs_given) replay.initial_epochs = tuning.initial_epochs;
    if (flags.retrain_epochs == 0) flags.retrain_epochs = tuning.retrain_epochs;
    replay.deployment.optimizer = flags.learning.Optimizer();
  }
  TRY(ApplyRecipe(settings, flags));
  if (flags.retrain_epochs == 0) flags.retrain_epochs = replay.initial_epochs;
  replay.deployment.retrain_epochs = flags.retrain_epochs;
  return {};
}

std::string ErrorName(const data::Description& description) {
  return description.labels.kind == data::Labels::Kind::kReal ? "squared error" : "error";
}

// Over so many points of a curve errors are averaged where each arrival is a test: single stretches are noisy, and the
// mean of everything so far would hide a drift.
constexpr std::size_t kSlide = 10;

// The mean error of the arrivals of the last kSlide points.
std::vector<Point> Sliding(const deploy::ReplayRun& run, std::size_t begin) {
  std::vector<Point> points;
  std::vector<std::pair<double, double>> sums = {{0, 0}};  // rows and errors so far
  std::size_t before = begin;
  for (const deploy::ReplayPoint& point : run.curve) {
    const auto rows = static_cast<double>(point.arrived - before);
    before = point.arrived;
    sums.emplace_back(sums.back().first + rows, sums.back().second + rows * point.error);
    if (sums.size() <= std::min(kSlide, run.curve.size())) continue;  // too few rows to say much
    const auto& then = sums[sums.size() - 1 - std::min(kSlide, run.curve.size())];
    points.push_back(
        {static_cast<double>(point.arrived), (sums.back().second - then.second) / (sums.back().first - then.first)});
  }
  return points;
}

// The curves of the first seed: on a test set as it is, without one over a window that slides.
std::vector<Line> Lines(const deploy::ReplayReport& report) {
  std::vector<Line> lines;
  for (const deploy::ReplayRun& run : report.runs) {
    if (run.seed != report.runs[0].seed || run.curve.empty()) continue;
    Line& line = lines.emplace_back();
    line.name = deploy::Name(run.method);
    if (report.test_rows == 0) line.points = Sliding(run, report.initial);
    for (const auto& point : run.curve)
      if (report.test_rows > 0) line.points.push_back({static_cast<double>(point.arrived), point.error});
    line.drifts.assign(run.drifts_at.begin(), run.drifts_at.end());
    line.retrainings.assign(run.retrained_at.begin(), run.retrained_at.end());
  }
  return lines;
}

// What the curves show.
std::string CurveName(const deploy::ReplayReport& report, const std::string& error_name) {
  if (report.test_rows > 0) return Str(error_name, " on the test rows so far");
  const std::size_t points = report.runs[0].curve.size();
  if (points == 0) return error_name;
  return Str(error_name, " of the last ", Grouped((report.rows - report.initial) * std::min(kSlide, points) / points),
             " rows");
}

std::string Epochs(int count) { return Str(count, count == 1 ? " epoch" : " epochs"); }

std::string Title(const ReplayFlags& flags, const deploy::Feed& feed) {
  const deploy::ReplayOptions& replay = flags.replay;
  return Str(Grouped(feed.size()), " rows, ", flags.learning.model, ", ", flags.learning.optimizer, " at rate ",
             flags.learning.rate, flags.learning.l2 > 0 ? Str(", l2 ", flags.learning.l2) : "", ", ",
             replay.course.initial == 0
                 ? "begun with nothing"
                 : Str(Epochs(replay.initial_epochs), " over the first ", Fixed(100 * replay.course.initial, 0), " %"),
             ", ", flags.recipe, " iterations every ", replay.deployment.schedule.max_buffer_size,
             " rows, retrainings of ", Epochs(flags.retrain_epochs),
             replay.course.test_rows > 0 ? Str(", tested on ", Grouped(replay.course.test_rows)) : "",
             replay.seeds > 1 ? Str(", ", replay.seeds, " seeds") : "");
}

std::vector<std::pair<std::string, std::string>> SettingsInForce(const base::Settings& settings) {
  std::vector<std::pair<std::string, std::string>> pairs;
  const std::string effective = settings.Effective();
  for (const std::string_view line : Split(effective, '\n'))
    if (const auto at = line.find(" = "); at != std::string_view::npos)
      pairs.emplace_back(line.substr(0, at), line.substr(at + 3));
  return pairs;
}

Result<void> Run(Door& door, const Verb& verb, const std::vector<std::string>& arguments) {
  ReplayFlags flags;
  base::Settings settings;
  flags.Register(settings);
  if (!TRY(ParseArguments(door, verb, arguments, settings))) return {};
  if (flags.workers > 1)
    return Error{Code::kInvalid, "replay --workers N: iterations are run by one worker so far; leave it out"};
  TRY(flags.learning.ChooseTask(door.files, flags.input));
  base::ThreadPool pool(Threads(flags.threads));
  const base::Env env = door.env(pool);
  data::Description description;
  const auto source = TRY(data::Open(env, flags.input, description));
  TRY(data::FindAllClasses(env, flags.input, description));
  const deploy::Feed feed = TRY(deploy::Feed::Load(pool, *source, description, &door.stop));
  TRY(Settle(door, settings, flags, feed));

  ReplayView view(flags.quiet, door.clock, flags.replay.methods.size() * static_cast<std::size_t>(flags.replay.seeds));
  flags.replay.progress = [&](const deploy::ReplayProgress& progress) { view.Show(progress); };
  flags.replay.stop = &door.stop;
  auto replayed = deploy::Replay(env, flags.replay, feed);
  view.Done();
  const deploy::ReplayReport report = TRY(std::move(replayed));

  const std::string error_name = ErrorName(feed.description);
  const auto lines = Lines(report);
  if (!flags.curve.empty())
    TRY(base::WriteAtomic(door.files, flags.curve, [&](base::OutputFile& file) {
      return file.Write(SvgChart(Title(flags, feed), lines, "rows", CurveName(report, error_name)));
    }));
  const std::string json = ReplayJson(report, error_name, SettingsInForce(settings));
  if (!flags.report.empty())
    TRY(base::WriteAtomic(door.files, flags.report, [&](base::OutputFile& file) { return file.Write(json); }));
  if (flags.json) return Print(door.files, json);
  std::string out = Str(Title(flags, feed), "\n\n", ReplayText(report, error_name));
  if (!flags.curve.empty()) out += Str("\n", TerminalChart(lines, "rows"), "curve  ", flags.curve, "\n");
  return Print(door.files, out);
}

}  // namespace

extern const Verb kReplay = {
    "replay", "send a data set through ways of keeping a model up to date", "[FLAGS] DATA…",
    "  freshet replay ratings.dat                              who is right most often, and what did it cost?\n"
    "  freshet replay sea.csv --compare velox,continuous --seeds 10 --curve sea.svg\n"
    "  freshet replay u.data --method continuous --buffer 1000 --sampling-rate 0.05\n"
    "  freshet replay covtype.data --positive 2 --order shuffle --json > covtype.json\n",
    Run};

}  // namespace freshet::cli
