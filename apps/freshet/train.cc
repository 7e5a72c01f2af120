#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "desk.h"
#include "elastic_seat.h"
#include "launcher_watch.h"
#include "notes.h"
#include "place_flags.h"
#include "progress.h"
#include "results.h"
#include "topology_view.h"
#include "train/event_file.h"
#include "train/job.h"
#include "train_config.h"
#include "verb.h"
#include "workers_view.h"

namespace freshet::cli {
namespace {

struct TrainFlags {
  train::Job job;
  PlaceFlags place;
  int threads = 0;
  bool json = false, quiet = false;
  std::string out, test, curve, tensorboard, config;

  void Register(base::Settings& settings);
};

void TrainFlags::Register(base::Settings& settings) {
  settings.Group("Result");
  settings.Add("out", &out, "the model file to write (safetensors)", {.letter = 'o', .value = "FILE"});
  settings.Add("test", &test, "evaluate on this file afterwards", {.letter = 't', .value = "FILE"});
  settings.Add("curve", &curve, "draw the learning curve into this SVG file, and below the results", {.value = "FILE"});
  settings.Add("tensorboard", &tensorboard, "write how it goes into this directory, for TensorBoard", {.value = "DIR"});
  settings.Add("trace", &job.trace, "what every worker did when, for Perfetto or chrome://tracing (JSON)",
               {.value = "FILE"});
  settings.Add("json", &json, "results as one JSON object");
  settings.Add("quiet", &quiet, "no progress");
  job.Register(settings);
  settings.Group("Learning");
  settings.Add("threads", &threads, "threads (0: every core)", {.value = "N", .least = 0, .most = 1024});
  settings.Group("Workers");
  place.Register(settings);
  settings.Group("Going on");
  settings.Add("config", &config, "read settings from this TOML file", {.value = "FILE"});
}

// What there is to show when all is done.
struct Done {
  const train::Outcome& outcome;
  std::optional<train::Evaluation> test;
  double seconds = 0;
};

std::string HowLearned(const train::Learning& learning) {
  if (learning.model == "kmeans") return Str(learning.clusters, " clusters");
  if (learning.optimizer == "lbfgs" || learning.optimizer == "coordinates") return learning.optimizer;
  return Str(learning.optimizer, " at rate ", learning.rate);
}

nlohmann::ordered_json DescentJson(const train::Descent& descent) {
  nlohmann::ordered_json json = {{"updates", descent.updates},
                                 {"rounds", descent.rounds},
                                 {"put_off", descent.put_off},
                                 {"coordinates", descent.coordinates},
                                 {"nonzero", descent.nonzero},
                                 {"objective", descent.objective},
                                 {"course", nlohmann::ordered_json::array()}};
  for (const train::Descent::Moment& moment : descent.course)
    json["course"].push_back({moment.updates, moment.objective});
  return json;
}

std::string DescentText(const train::Descent& descent) {
  return Str("descent      ", Grouped(descent.updates), " updates in ", Grouped(descent.rounds), " rounds, ",
             Grouped(descent.put_off), " put off; ", Grouped(descent.nonzero), " of ", Grouped(descent.coordinates),
             " coordinates not zero, objective ", descent.objective, "\n");
}

std::string TraceText(const train::TrainTrace& trace) {
  return Str("trace        ", trace.path(), ", ", Grouped(trace.spans()), " spans",
             trace.dropped() > 0 ? Str(" (", Grouped(trace.dropped()), " later ones left out)") : "", "\n");
}

Result<void> Show(Door& door, const TrainFlags& flags, const Done& done, const Curve& curve) {
  const train::Outcome& outcome = done.outcome;
  const model::Model& model = *outcome.trained.model;
  const optimize::Parameters& parameters = outcome.trained.parameters;
  const train::Report& report = outcome.report;
  std::vector<Line> lines = {{"loss before learning", curve.points()}};
  if (!flags.curve.empty())
    TRY(base::WriteAtomic(door.files, flags.curve, [&](base::OutputFile& file) {
      return file.Write(SvgChart("Learning curve", lines, "rows", "loss on rows not learned yet"));
    }));
  if (flags.json) {
    nlohmann::ordered_json json;
    json["schema"] = 1;
    json["model"] = nlohmann::ordered_json::parse(model.config().ToJson());
    json["parameters"] = parameters.size();
    json["rows"] = report.rows;
    json["epochs"] = report.epochs;
    json["bad_rows"] = outcome.bad_rows;
    if (!outcome.trained.description.notes.empty()) json["notes"] = outcome.trained.description.notes;
    json["seconds"] = done.seconds;
    json["train_seconds"] = report.seconds;
    json["update_seconds"] = report.update_seconds;
    if (report.wait_seconds) json["wait_seconds"] = *report.wait_seconds;
    json["stopped_early"] = report.stopped_early;
    json["progressive"] = ToJson(report.progressive, model);
    if (report.epochs > 1) json["last_epoch"] = ToJson(report.last_epoch, model);
    if (outcome.descent) json["descent"] = DescentJson(*outcome.descent);
    if (report.held_out) json["held_out"] = ToJson(*report.held_out, model);
    if (done.test) json["test"] = ToJson(*done.test, model);
    if (!flags.out.empty()) json["out"] = flags.out;
    if (report.imbalance > 0) json["imbalance"] = report.imbalance;
    if (outcome.choice) json["choice"] = outcome.choice->how;
    if (!outcome.workers.empty()) {
      json["topology"] = ToJson(outcome.topology);
      json["step"] = StepJson(outcome.workers);
      for (const WorkerLine& worker : outcome.workers) json["workers"].push_back(ToJson(worker));
    }
    if (outcome.group)
      json["membership"] = {{"changes", outcome.group->changes},   {"lost", outcome.group->lost},
                            {"left_out", outcome.group->left_out}, {"came", outcome.group->came},
                            {"repeated", outcome.group->repeated}, {"rows_given_up", outcome.group->given_up},
                            {"seconds", outcome.group->seconds}};
    return Print(door.files, JsonLine(json));
  }
  const std::string& kind = model.config().network.empty() ? model.config().kind : outcome.job.learning.model;
  std::string out = Str("trained      ", kind, ", ", model.loss().name(), " loss, ", Grouped(parameters.size()),
                        " parameters, ", HowLearned(outcome.job.learning), "\n");
  out += Str("progressive  ", ToText(report.progressive, model), "\n");
  if (report.epochs > 1 && report.last_epoch.rows() > 0)
    out += Str("last epoch   ", ToText(report.last_epoch, model), "\n");
  if (outcome.descent) out += DescentText(*outcome.descent);
  if (report.held_out)
    out += Str("held out     ", ToText(*report.held_out, model),
               report.stopped_early ? Str("  (stopped early, after epoch ", report.epochs, ")") : "", "\n");
  if (done.test) out += Str("test         ", ToText(*done.test, model), "\n");
  if (outcome.bad_rows > 0) out += Str("bad rows     ", Grouped(outcome.bad_rows), " set aside\n");
  out += Str("took         ", Fixed(done.seconds, 3), " s");
  if (report.seconds > 0)
    out += Str(", ", Grouped(static_cast<unsigned long long>(static_cast<double>(report.rows) / report.seconds)),
               " rows/s while training");
  if (report.wait_seconds) out += Str(", ", Fixed(*report.wait_seconds, 3), " s of it waiting for rows");
  out += "\n";
  const strategy::StrategyOptions& how = outcome.job.together.strategy;
  out += ToText(outcome.workers, how.codec != "none" || how.factors) + ToText(outcome.topology);
  if (outcome.group && outcome.group->changes > 0)
    out += Str("membership   ", outcome.group->changes, " changes: ", outcome.group->lost, " lost, ",
               outcome.group->left_out, " left out, ", outcome.group->came, " came; ", outcome.group->repeated,
               " steps repeated",
               outcome.group->given_up > 0 ? Str(", ", Grouped(outcome.group->given_up), " rows given up") : "",
               "; no step for ", Fixed(outcome.group->seconds, 2), " s in all\n");
  if (outcome.choice) out += Str("chosen       ", outcome.choice->how, "\n");
  if (report.imbalance > 0)
    out += Str("balanced     after the first epoch: one worker had ", Fixed(report.imbalance * 100, 0),
               " % more rows than the mean\n");
  if (!flags.out.empty())
    out += Str("saved        ", flags.out,
               door.files.IsDevice(flags.out) ? "" : Str(" (settings in ", flags.out, ".toml)"), "\n");
  if (outcome.trace != nullptr) out += TraceText(*outcome.trace);
  if (!flags.curve.empty()) out += Str("\n", TerminalChart(lines, "rows"), "curve        ", flags.curve, "\n");
  return Print(door.files, out);
}

// A regression that has learned nothing looks like any other: its RMSE is some number. Says so when whoever always
// predicts the mean would have done as well.
void WarnIfNothingLearned(Door& door, const Done& done) {
  const train::Outcome& outcome = done.outcome;
  const train::Evaluation& judged = done.test                 ? *done.test
                                    : outcome.report.held_out ? *outcome.report.held_out
                                                              : outcome.report.last_epoch;
  const auto rmse = judged.rmse(), mean = judged.rmse_of_mean();
  if (!rmse || !mean || *rmse < *mean || *mean == 0) return;
  const model::Model& model = *outcome.trained.model;
  const bool raw = !outcome.trained.description.target.any() && model.WantsScaledLabels();
  const bool lbfgs = model.traits().by_lbfgs && outcome.job.learning.optimizer != "lbfgs" && !outcome.group;
  door.log.Warn("learned nothing", "rmse", *rmse, "rmse_of_predicting_the_mean", *mean, "try",
                raw ? Str("scaled targets: leave out --no-scale-target, or begin without --from")
                    : Str("more --epochs, another --rate", lbfgs ? ", or --optimizer lbfgs" : ""));
}

// A lock that is gone with who held it, also after a failure.
class OutLock final : public base::FileLock {
 public:
  static Result<std::unique_ptr<base::FileLock>> Take(base::Files& files, const std::string& path) {
    auto held = TRY(files.Lock(path));
    return std::unique_ptr<base::FileLock>(std::make_unique<OutLock>(files, path, std::move(held)));
  }
  OutLock(base::Files& files, std::string path, std::unique_ptr<base::FileLock> held)
      : files_(files), path_(std::move(path)), held_(std::move(held)) {}
  ~OutLock() override { (void)files_.Remove(path_); }  // while it is held, so that nobody else's is removed

 private:
  base::Files& files_;
  const std::string path_;
  const std::unique_ptr<base::FileLock> held_;
};

// What is written when all is done: better refused before. Whoever prints the results writes them, too.
Result<std::unique_ptr<base::FileLock>> CheckPlaces(Door& door, const TrainFlags& flags) {
  if (flags.out == "-") return Error{Code::kInvalid, "--out: a model goes to a file, not to standard output"};
  if (!flags.test.empty()) TRY(door.files.Glob(flags.test));
  if (!door.speaks) return std::unique_ptr<base::FileLock>();
  for (const std::string& path : {flags.out, flags.curve}) TRY(CheckPlaceFor(door.files, path));
  if (flags.out.empty() || door.files.IsDevice(flags.out)) return std::unique_ptr<base::FileLock>();
  return OutLock::Take(door.files, flags.out + ".lock");
}

// Who was the first before may still be there, cut off from the others, and will soon find out.
Result<std::unique_ptr<base::FileLock>> TakeOver(Door& door, const TrainFlags& flags) {
  for (const auto end = door.clock.Now() + std::chrono::seconds(30);;) {
    auto lock = CheckPlaces(door, flags);
    if (lock.ok() || lock.error().code != Code::kBusy || door.clock.Now() >= end) return lock;
    TRY(door.GoOn());
    door.clock.Sleep(std::chrono::milliseconds(100));
  }
}

Result<void> Keep(Door& door, const TrainFlags& flags, const base::Settings& settings, const train::Outcome& outcome) {
  if (flags.out.empty()) return {};
  TRY(train::Save(door.files, outcome, flags.out));
  if (door.files.IsDevice(flags.out)) return {};
  return base::WriteAtomic(door.files, flags.out + ".toml",
                           [&](base::OutputFile& file) { return file.Write(settings.Effective()); });
}

Result<void> Train(Door& door, TrainFlags& flags, const base::Settings& settings, const fabric::Place& place) {
  const auto started = door.clock.Now();
  train::Around around;
  std::unique_ptr<ElasticSeat> seat;
  if (!flags.job.together.elastic.empty()) {
    seat = TRY(ElasticSeat::Open(flags.place, place, TRY(flags.job.together.ElasticBounds()), door));
    around.elastic = seat->place();
    around.elastic->options.membership.wait = std::chrono::duration_cast<base::Clock::Duration>(
        std::chrono::duration<double>(flags.job.together.elastic_wait));
  }
  std::unique_ptr<Desk> desk;
  if (seat == nullptr && place.size > 1 && flags.place.fabric == "tcp" && flags.job.together.strategy.kind == "server")
    desk = TRY(Desk::Open(flags.place, place, door));
  // Of attempts after which all begin again, results say nothing.
  const auto lost = [&](const Error& why) {
    if (why.code == Code::kPeerLost && seat != nullptr && seat->may_begin_again()) door.speaks = false;
    return why;
  };
  if (place.size > 1 && !ElasticSeat::Comes()) {
    auto fabric = flags.place.Connect(place, door);
    if (!fabric.ok()) return lost(fabric.error());
    around.fabric = std::move(fabric).value();
  }
  auto lock = CheckPlaces(door, flags);
  if (!lock.ok()) {
    if (around.fabric != nullptr) around.fabric->Abort(lock.error());
    return lock.error();
  }
  // Processes of one host share its cores.
  base::ThreadPool pool(flags.threads > 0 ? flags.threads : std::max(Threads(0) / place.local_size, 1));
  const base::Env env = door.env(pool);
  optimize::HeapMemory memory;
  ProgressView view(flags.quiet || (!door.speaks && seat == nullptr), door.clock);
  around.stop = &door.stop;
  if (door.speaks) around.opened = ShowNotes;
  std::unique_ptr<train::EventFile> events;
  if (!flags.tensorboard.empty() && door.speaks)
    events = TRY(train::EventFile::Open(door.files, door.clock, flags.tensorboard, Str(getpid())));
  around.progress = [&](const train::Progress& progress) {
    view.Show(progress);
    if (events != nullptr) events->Add(progress);
  };
  if (seat != nullptr) {
    if (door.speaks && !flags.quiet)
      WriteError(Str("freshet: others may join at ", around.elastic->seat.address, ", job ", place.job, "\n"));
    around.changed = [&](const strategy::GroupChange& change) {
      seat->view().Tell(change);
      if (!change.first) return;
      view.Done();
      WriteError(Str("freshet: ", change.ToText(), "\n"));
    };
  }
  if (desk != nullptr) {
    if (door.speaks && !flags.quiet)
      WriteError(Str("freshet: asked how it goes at ", desk->address(), ", job ", place.job, "\n"));
    around.card = desk->card();
    around.met = [&desk](const std::vector<std::string>& cards) { desk->Meet(cards); };
  }
  if (WorkerView* const shown = seat != nullptr ? &seat->view() : desk != nullptr ? &desk->view() : nullptr) {
    around.panel = &shown->panel();
    around.own_progress = [shown](const train::Progress& progress) { shown->Tell(progress); };
  }
  auto ran = train::Run(env, memory, flags.job, std::move(around));
  view.Done();
  if (!ran.ok()) return lost(ran.error());
  train::Outcome outcome = std::move(ran).value();
  if (events != nullptr) TRY(events->End(outcome.report));
  if (seat != nullptr && door.speaks != (outcome.rank == 0)) {  // who was the first is gone
    door.speaks = outcome.rank == 0;
    lock = TakeOver(door, flags);
    if (!lock.ok()) return lock.error();
  }
  if (!door.speaks) return {};
  flags.job = outcome.job;  // so that the effective configuration says it all
  TRY(Keep(door, flags, settings, outcome));
  Done done{.outcome = outcome, .test = {}};
  if (!flags.test.empty()) {
    done.test = TRY(train::Evaluate(env, outcome, {flags.test}, &door.stop));
    if (outcome.trace != nullptr) TRY(outcome.trace->Write());
  }
  lock.value().reset();
  done.seconds = base::Seconds(door.clock.Now() - started);
  WarnIfNothingLearned(door, done);
  return Show(door, flags, done, view.curve());
}

Result<void> Run(Door& door, const Verb& verb, const std::vector<std::string>& arguments) {
  TrainFlags flags;
  base::Settings settings;
  flags.Register(settings);
  if (!TRY(ParseArguments(door, verb, arguments, settings))) return {};
  train::Job& job = flags.job;
  job.said = settings.Given();
  const fabric::Place place = TRY(flags.place.FindPlace(door, job.together.workers));
  const LauncherWatch launcher(place.mark);
  door.speaks = place.rank == 0 && !ElasticSeat::Comes();
  if (job.together.own()) job.input.rank = place.rank;
  TRY(train::Check(door.files, job, std::max({place.size, job.together.workers, 1})));  // before anybody is met
  return Train(door, flags, settings, place);
}

}  // namespace

Result<void> CheckTrainConfig(const TrainConfig& config) {
  TrainFlags flags;
  base::Settings settings;
  flags.Register(settings);
  TRY(settings.ParseToml(config.toml, config.name));
  if (!config.data) return {};
  const auto refuse = [&](std::string_view why) { return Error{Code::kInvalid, Str(config.name, ": [train] ", why)}; };
  train::Job& job = flags.job;
  if (job.input.paths.empty()) return refuse("names no data: data = [\"FILE\", …]");
  for (const char* const given : {"workers", "elastic", "rank", "world", "rendezvous", "job", "token-file", "fabric"})
    if (settings.Given(given))
      return refuse(Str(given, " is what [job] says: nodes, workers of a node, elastic, engine; leave it out"));
  if (const int servers = job.together.strategy.servers; servers >= config.processes && config.elastic.empty())
    return refuse(Str("servers = ", servers, ", and [job] has ", config.processes,
                      " processes in all, of which one has to read rows at least"));
  return {};
}

Result<void> CheckTrainFiles(base::Files& files, const TrainConfig& config, const std::string& place) {
  TrainFlags flags;
  base::Settings settings;
  flags.Register(settings);
  TRY(settings.ParseToml(config.toml, config.name));
  data::Input& input = flags.job.input;
  const int shares = flags.job.together.own() ? config.processes : 1;
  for (int rank = 0; rank < shares; ++rank) {
    if (flags.job.together.own()) input.rank = rank;
    std::vector<std::string> paths = input.Resolved();
    if (!flags.test.empty()) paths.push_back(flags.test);
    for (const std::string& path : paths)
      TRY(files.Glob(path.starts_with('/') ? path : Str(place, "/", path))
              .While(Str("reading [train] of ", config.name)));
  }
  return {};
}

extern const Verb kTrain = {
    "train", "learn a model from data", "[FLAGS] DATA…",
    "  freshet train a9a -o a9a.model                        a linear model, everything inferred\n"
    "  freshet train covtype.data --positive 2 -o c.model    class 2 against the rest, last column is the label\n"
    "  freshet train ratings.dat -k 40 -o r.model            matrix factorization of user::item::rating\n"
    "  freshet train train-images-idx3-ubyte --model lenet5 -o mnist.model   a convolution network of the zoo\n"
    "  freshet train big.svm.zst --holdout 0.1 --epochs 10 --patience 2 --checkpoint run.ckpt -o big.model\n"
    "  zcat clicks.gz | freshet train - --format vw --bits 22 -o clicks.model\n",
    Run};

}  // namespace freshet::cli
