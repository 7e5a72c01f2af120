#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "data/cache.h"
#include "launcher_watch.h"
#include "model/model_file.h"
#include "notes.h"
#include "results.h"
#include "train/agreement.h"
#include "train/members.h"
#include "train_worker.h"
#include "verb.h"

namespace freshet::cli {

using train::AgreeOnFiles;
using train::AgreeOnSettings;
using train::FileAccount;
using train::LookAt;
using train::Members;
using train::TrainTrace;

void TrainFlags::Register(base::Settings& settings) {
  settings.Group("Result");
  settings.Add("out", &out, "the model file to write (safetensors)", {.letter = 'o', .value = "FILE"});
  settings.Add("test", &test, "evaluate on this file afterwards", {.letter = 't', .value = "FILE"});
  settings.Add("curve", &curve, "draw the learning curve into this SVG file, and below the results", {.value = "FILE"});
  settings.Add("trace", &trace, "what every worker did when, for Perfetto or chrome://tracing (JSON)",
               {.value = "FILE"});
  settings.Add("json", &json, "results as one JSON object");
  settings.Add("quiet", &quiet, "no progress");
  input.Register(settings, data::Input::Use::kTraining);
  settings.Group("Model");
  learning.RegisterModel(settings);
  settings.Add("from", &from, "start from this model file", {.letter = 'i', .value = "FILE"});
  settings.Group("Learning");
  settings.Add("epochs", &epochs, "passes over the data (0: 1, factorization 20, lbfgs 50, networks 10)",
               {.letter = 'e', .value = "N", .least = 0});
  learning.RegisterLearning(settings);
  settings.Add(
      "batch", &batch,
      "rows per update (0: 1, networks 32; with several workers that exchange gradients 16 of each, kmeans 256)",
      {.value = "N", .least = 0, .most = 1 << 20});
  settings.Add("shuffle", &shuffle,
               "mix rows within 16 MB (networks: 64 MB, and by default), and blocks from the second epoch on");
  settings.Add("prefetch", &prefetch, "blocks of rows read ahead of need (networks)",
               {.value = "N", .least = 1, .most = 1024});
  settings.Add("threads", &threads, "threads (0: every core)", {.value = "N", .least = 0, .most = 1024});
  settings.Add("deterministic", &deterministic,
               "the same result for any number of threads (but for LSTM and GRU layers); --no-deterministic lets them "
               "update a sparse model at once, "
               "and workers measure how sums travel best");
  settings.Group("Workers");
  workers.Register(settings);
  settings.Group("Validation");
  settings.Add("holdout", &holdout, "share of rows kept back to test on", {.value = "X", .least = 0, .most = 0.9});
  settings.Add("holdout-after", &holdout_after, "keep back rows from this time on (seconds since 1970)",
               {.value = "T", .least = 0});
  settings.Add("patience", &patience, "stop after so many epochs without a better held-out loss",
               {.value = "N", .least = 0});
  settings.Group("Going on");
  settings.Add("checkpoint", &checkpoint, "save the run here; the same command again resumes it", {.value = "FILE"});
  settings.Add("checkpoint-seconds", &checkpoint_seconds, "time between checkpoints", {.value = "S", .least = 0});
  settings.Add("fresh", &fresh, "start over though there is a checkpoint");
  settings.Add(
      "keep-optimizer", &keep_optimizer,
      "the model file also holds what the update rule has summed up, so that serve and --from go on as this run "
      "would have");
  settings.Add("cache", &cache, "keep parsed rows here", {.letter = 'c', .value = "FILE"});
  settings.Add("scratch", &scratch, "where temporary files go", {.value = "DIR"});
  settings.Add("config", &config, "read settings from this TOML file", {.value = "FILE"});
}

namespace {

// How often workers meet, where nothing is said about it. An exchange costs as much as thousands of rows of a small
// model: those that learn row by row go on doing so, each worker alone, and all take the mean now and then.
void SettleMeeting(TrainFlags& flags, const base::Settings& settings) {
  constexpr std::uint64_t kOfNetworks = 32, kOfClusters = 256, kOfOthers = 16;  // the last two are of each worker
  const train::Learning& learning = flags.learning;
  strategy::StrategyOptions& strategy = flags.workers.strategy;
  const bool network = learning.IsNetwork(), clusters = learning.model == "kmeans";
  const bool by_rows = !network && !clusters && flags.batch == 0;
  if (flags.workers.count == 1) {
    if (flags.batch == 0) flags.batch = network ? kOfNetworks : 1;
    return;
  }
  const auto said = [&](std::initializer_list<std::string_view> names) {
    return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return settings.Given(name); });
  };
  // These are about gradients, which are exchanged with every update.
  if (by_rows && !said({"strategy", "codec", "layer-factors", "accumulate", "batch-per-worker", "group"}))
    strategy.kind = "average";
  const bool alone_between = by_rows && strategy.kind == "average";
  if (alone_between && !settings.Given("every")) strategy.every = learning.model == "factorization" ? 16384 : 256;
  const auto workers = static_cast<std::uint64_t>(flags.workers.batch_per_worker ? 1 : flags.workers.count);
  if (flags.batch == 0)
    flags.batch = network         ? std::max(kOfNetworks, workers)
                  : alone_between ? workers
                                  : workers * (clusters ? kOfClusters : kOfOthers);
}

// Replaces every "auto" and unset number by what will be used, so that the effective configuration says it all.
void SettleDefaults(TrainFlags& flags, const base::Settings& settings, const data::Description& description) {
  train::Learning& learning = flags.learning;
  learning.SettleDefaults(description);
  const bool network = learning.IsNetwork();
  if (flags.epochs == 0)
    flags.epochs = learning.optimizer == "lbfgs" ? 50 : (learning.model == "factorization" ? 20 : network ? 10 : 1);
  SettleMeeting(flags, settings);
  if (network && !settings.Given("shuffle")) flags.shuffle = true;
  if (flags.workers.scale_rate == "linear" && flags.workers.count > 1) {
    learning.rate *= flags.workers.count;
    if (!settings.Given("warmup")) learning.warmup = 500;
  }
  // One pass may be a stream, which has no end to slow down for; several passes settle at theirs.
  if (learning.schedule == "auto") learning.schedule = flags.epochs > 1 ? "linear" : "constant";
}

std::string HowLearned(const TrainFlags& flags) {
  const train::Learning& learning = flags.learning;
  if (learning.model == "kmeans") return Str(learning.clusters, " clusters");
  if (learning.optimizer == "lbfgs") return "lbfgs";
  return Str(learning.optimizer, " at rate ", learning.rate);
}

std::string TraceText(const TrainTrace& trace) {
  return Str("trace        ", trace.path(), ", ", Grouped(trace.spans()), " spans",
             trace.dropped() > 0 ? Str(" (", Grouped(trace.dropped()), " later ones left out)") : "", "\n");
}

Result<void> Show(Door& door, const TrainFlags& flags, const Outcome& outcome, const Curve& curve,
                  const TrainTrace* trace) {
  const model::Model& model = *outcome.model;
  const optimize::Parameters& parameters = *outcome.parameters;
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
    if (!outcome.description.notes.empty()) json["notes"] = outcome.description.notes;
    json["seconds"] = outcome.seconds;
    json["train_seconds"] = report.seconds;
    json["update_seconds"] = report.update_seconds;
    if (report.wait_seconds) json["wait_seconds"] = *report.wait_seconds;
    json["stopped_early"] = report.stopped_early;
    json["progressive"] = ToJson(report.progressive, model);
    if (report.epochs > 1) json["last_epoch"] = ToJson(report.last_epoch, model);
    if (report.held_out) json["held_out"] = ToJson(*report.held_out, model);
    if (outcome.test) json["test"] = ToJson(*outcome.test, model);
    if (!flags.out.empty()) json["out"] = flags.out;
    if (report.imbalance > 0) json["imbalance"] = report.imbalance;
    if (!outcome.workers.empty()) {
      json["topology"] = ToJson(outcome.topology);
      json["step"] = StepJson(outcome.workers);
      for (const WorkerLine& worker : outcome.workers) json["workers"].push_back(ToJson(worker));
    }
    return Print(door.files, JsonLine(json));
  }
  const std::string& kind = model.config().network.empty() ? model.config().kind : flags.learning.model;
  std::string out = Str("trained      ", kind, ", ", model.loss().name(), " loss, ", Grouped(parameters.size()),
                        " parameters, ", HowLearned(flags), "\n");
  out += Str("progressive  ", ToText(report.progressive, model), "\n");
  if (report.epochs > 1) out += Str("last epoch   ", ToText(report.last_epoch, model), "\n");
  if (report.held_out)
    out += Str("held out     ", ToText(*report.held_out, model),
               report.stopped_early ? Str("  (stopped early, after epoch ", report.epochs, ")") : "", "\n");
  if (outcome.test) out += Str("test         ", ToText(*outcome.test, model), "\n");
  if (outcome.bad_rows > 0) out += Str("bad rows     ", Grouped(outcome.bad_rows), " set aside\n");
  out += Str("took         ", Fixed(outcome.seconds, 3), " s");
  if (report.seconds > 0)
    out += Str(", ", Grouped(static_cast<unsigned long long>(static_cast<double>(report.rows) / report.seconds)),
               " rows/s while training");
  if (report.wait_seconds) out += Str(", ", Fixed(*report.wait_seconds, 3), " s of it waiting for rows");
  out += "\n";
  const strategy::StrategyOptions& how = flags.workers.strategy;
  out += ToText(outcome.workers, how.codec != "none" || how.factors) + ToText(outcome.topology);
  if (report.imbalance > 0)
    out += Str("balanced     after the first epoch: one worker had ", Fixed(report.imbalance * 100, 0),
               " % more rows than the mean\n");
  if (!flags.out.empty())
    out += Str("saved        ", flags.out,
               door.files.IsDevice(flags.out) ? "" : Str(" (settings in ", flags.out, ".toml)"), "\n");
  if (trace != nullptr) out += TraceText(*trace);
  if (!flags.curve.empty()) out += Str("\n", TerminalChart(lines, "rows"), "curve        ", flags.curve, "\n");
  return Print(door.files, out);
}

// A regression that has learned nothing looks like any other: its RMSE is some number. Says so when whoever always
// predicts the mean would have done as well.
void WarnIfNothingLearned(Door& door, const TrainFlags& flags, const Outcome& outcome) {
  const train::Evaluation& judged = outcome.test              ? *outcome.test
                                    : outcome.report.held_out ? *outcome.report.held_out
                                                              : outcome.report.last_epoch;
  const auto rmse = judged.rmse(), mean = judged.rmse_of_mean();
  if (!rmse || !mean || *rmse < *mean || *mean == 0) return;
  const bool raw = !outcome.description.target.any() && outcome.model->WantsScaledLabels();
  const bool lbfgs = outcome.model->traits().by_lbfgs && flags.learning.optimizer != "lbfgs" && outcome.workers.empty();
  door.log.Warn("learned nothing", "rmse", *rmse, "rmse_of_predicting_the_mean", *mean, "try",
                raw ? Str("scaled targets: leave out --no-scale-target, or begin without --from")
                    : Str("more --epochs, another --rate", lbfgs ? ", or --optimizer lbfgs" : ""));
}

using Names = std::set<std::string_view>;

// The lines of `settings` but those of `left_out`.
std::string Without(const Names& left_out, std::string_view settings) {
  std::string kept;
  for (const std::string_view line : Split(settings, '\n'))
    if (!line.empty() && !left_out.contains(line.substr(0, line.find(' ')))) kept += Str(line, "\n");
  return kept;
}

// The settings that must be the same when a run is resumed: all but those that say where things go. Workers with inputs
// of their own each name another.
std::string Fingerprint(const TrainFlags& flags, const base::Settings& settings) {
  Names free = {"out",          "test",       "curve",         "json",
                "quiet",        "threads",    "checkpoint",    "checkpoint-seconds",
                "fresh",        "scratch",    "bad-rows",      "max-bad-rows",
                "cache",        "rank",       "world",         "rendezvous",
                "job",          "token-file", "heartbeat",     "shared-memory",
                "trace",        "fabric",     "tls",           "announce",
                "join-timeout", "workers",    "keep-optimizer"};
  if (flags.workers.own()) free.insert({"data", "label-file"});
  return Without(free, settings.Effective());
}

// The settings that must be the same for all workers. What files are called may differ from host to host: what is in
// them is compared instead.
std::string Common(const TrainFlags& flags, const base::Settings& settings) {
  Names elsewhere = {"data", "label-file", "from", "split"};
  if (flags.learning.model.ends_with(".toml")) elsewhere.insert("model");
  const auto given = [](bool is) { return is ? "given" : "not given"; };
  return Str(Without(elsewhere, Fingerprint(flags, settings)), "fresh = ", flags.fresh,
             "\ncheckpoint = ", given(!flags.checkpoint.empty()), "\ntrace = ", given(!flags.trace.empty()),
             "\nversion = ", ProgramVersion(), "\n");
}

// What all workers begin with, as far as files told it.
std::string Common(const Start& start) {
  return Str("input = ", start.description.ToJson(), "\nmodel = ", start.config.ToJson(),
             "\nchecksum of the weights of --from = ", start.weights == nullptr ? 0 : start.weights->Checksum(), "\n");
}

Result<void> Evaluate(Door& door, const TrainFlags& flags, const base::Env& env, Outcome& outcome) {
  data::Input test;
  test.paths = {flags.test};
  test.grow = false;
  test.labelled = flags.input.labelled;
  test.max_bad_rows = flags.input.max_bad_rows;
  const auto rows = TRY(data::Open(env, test, outcome.description));
  outcome.test = TRY(train::Evaluate(env, *outcome.model, *outcome.parameters, outcome.description, *rows, &door.stop));
  return {};
}

// What cannot be done together is refused before anything is read.
Result<void> CheckTogether(base::Files& files, const TrainFlags& flags) {
  TRY(flags.workers.Collectives());
  if (flags.workers.count == 1) return {};
  if (flags.learning.optimizer == "lbfgs") return Error{Code::kInvalid, "--workers does not go with --optimizer lbfgs"};
  const std::string& split = flags.workers.split;
  const std::string once = flags.input.Once(files);
  if (flags.workers.own() && flags.workers.workers > 0)
    return Error{Code::kInvalid, Str("--split own is for processes, each with an input of its own, and --workers ",
                                     flags.workers.workers, " are one process; start them with freshet launch -n ",
                                     flags.workers.workers, " --")};
  if (!once.empty() && !flags.workers.own())
    return Error{Code::kInvalid, Str("workers need files that each can open, and ", once,
                                     " can be read only once; with --split own each process has an input of its own")};
  if (split != "bytes" && split != "own") return {};
  if (split == "bytes" && !flags.input.part.empty())
    return Error{Code::kInvalid, "--part and --split bytes both say which part a worker reads; leave one out"};
  for (const std::string& path : flags.input.Resolved())
    if (data::CacheReader::Is(files, path))
      return Error{Code::kInvalid, Str("--split ", split, ": ", path,
                                       " holds rows that were parsed before, which are read as a "
                                       "whole; use --split rows, or the files it was made from")};
  return {};
}

// What is read, for whoever resumes the run. When a file was written does not matter, only what is in it; of what
// cannot be looked at twice (a pipe) nothing is known.
std::string Account(base::Files& files, const std::vector<std::string>& patterns) {
  const auto accounts = LookAt(files, patterns);
  if (!accounts.ok()) return "";
  std::string lines;
  for (const FileAccount& file : accounts.value())
    lines += Str(file.path, " of ", Grouped(file.bytes), file.folder ? " files" : " bytes", ", checksum ",
                 file.checksum, "\n");
  return lines;
}

// Before anything is read: all have the same settings and, unless each has its own, the same files.
Result<void> CompareWorkers(Door& door, const TrainFlags& flags, const base::Settings& settings, Members& members) {
  TRY(AgreeOnSettings(members, "settings", Common(flags, settings)));
  const bool own = flags.workers.own();
  return AgreeOnFiles(members, flags.workers.split == "auto" ? "rows" : flags.workers.split,
                      own ? std::vector<FileAccount>() : TRY(LookAt(door.files, flags.input.Resolved())));
}

// Names are numbered while rows are read, and each worker would number those of its own share: all look at theirs
// first, so that nobody may have one that can be read only once.
Result<void> CheckNames(base::Files& files, const data::Input& input, const data::Description& description,
                        Members& members) {
  if (description.dictionaries.empty()) return {};
  const auto once = TRY(members.Tell("inputs that can be read once", input.Once(files)));
  for (std::size_t rank = 0; rank < once.size(); ++rank)
    if (!once[rank].empty())
      return members.Refuse(
          Str("--split own: ", members.Name(rank), " has ", once[rank], ", which can be read only once, and ",
              description.format == "ratings" ? "users and items" : "categories",
              " are looked for before training, to be numbered alike; ",
              description.format == "ratings" ? "give it a file" : "give it a file, or hash them with --bits 18"));
  return {};
}

// Trains alone or, with members, as one of several processes.
Result<void> Train(Door& door, TrainFlags& flags, const base::Settings& settings, const fabric::Place& place,
                   Members* members) {
  const auto started = door.clock.Now();
  // Processes of one host share its cores.
  const int threads = flags.threads > 0 ? flags.threads : std::max(Threads(0) / place.local_size, 1);
  const bool speaks = place.rank == 0;
  base::ThreadPool pool(threads);
  const base::Env env = door.env(pool);
  if (flags.keep_optimizer && flags.learning.optimizer == "lbfgs")
    return Error{Code::kInvalid, "--keep-optimizer: lbfgs sums up nothing that could be gone on with; leave one out"};
  if (flags.out == "-") return Error{Code::kInvalid, "--out: a model goes to a file, not to standard output"};
  for (const std::string& path : {flags.checkpoint, flags.cache, flags.input.bad_rows_path})
    TRY(CheckPlaceFor(door.files, path));
  for (const std::string& path : {flags.out, flags.curve})
    if (speaks) TRY(CheckPlaceFor(door.files, path));
  if (!flags.test.empty()) TRY(door.files.Glob(flags.test));  // now rather than after hours of training
  const bool to_file = speaks && !flags.out.empty() && !door.files.IsDevice(flags.out);
  const std::string lock_path = flags.out + ".lock";
  const auto lock = to_file ? TRY(door.files.Lock(lock_path)) : nullptr;

  optimize::HeapMemory memory;
  if (members != nullptr) TRY(CompareWorkers(door, flags, settings, *members));
  TRY(flags.learning.ChooseTask(door.files, flags.input));
  const bool own = members != nullptr && flags.workers.own();
  if (own) flags.input.options.others = members;
  Start start{.flags = flags};
  std::optional<model::TrainedModel> earlier;
  if (!flags.from.empty()) {
    earlier = TRY(model::LoadModel(door.files, flags.from, memory));
    start.description = earlier->description;
    if (!flags.input.scale_target && earlier->description.target.any())
      return Error{Code::kInvalid, Str("--no-scale-target: ", flags.from,
                                       " has learned scaled numbers and goes on with them; leave out one of the two")};
    start.weights = &earlier->parameters;
    start.rated = &earlier->rated;
    if (earlier->sums) start.sums = &*earlier->sums;
    flags.learning.model = earlier->model->config().kind;
    flags.learning.loss = earlier->model->config().loss;
  }
  flags.input.stop = &door.stop;
  auto source = TRY(data::Open(env, flags.input, start.description));
  if (own) TRY(CheckNames(door.files, flags.input, start.description, *members));
  if (!earlier) TRY(data::FindAllClasses(env, flags.input, start.description));
  if (speaks) ShowNotes(start.description);
  SettleDefaults(flags, settings, start.description);
  if (flags.learning.IsNetwork() && !earlier) TRY(data::SettleView(env, flags.input, *source, start.description));
  if (own && !earlier) TRY(data::AgreeOnView(*members, start.description.view));
  if (!flags.learning.IsNetwork() &&
      (flags.input.crop > 0 || flags.input.mirror || flags.input.subtract_mean != "auto"))
    return Error{Code::kInvalid, "--crop, --mirror and --subtract-mean are for networks; name one with --model"};
  start.config = earlier ? earlier->model->config() : TRY(flags.learning.Config(start.description, door.log));
  if (!earlier) {
    const auto model = TRY(model::Model::Make(start.config));
    TRY(data::SettleTarget(flags.input, *source, model->WantsScaledLabels(), members, start.description));
  }
  start.batch = flags.workers.GlobalBatch(flags.batch);
  start.whole = flags.workers.Whole();
  start.fingerprint = Str(Fingerprint(flags, settings), "rows of an update = ", start.batch, "\n");
  if (!flags.checkpoint.empty() && !own) start.inputs = Account(door.files, flags.input.Resolved());
  if (members != nullptr) {
    TRY(AgreeOnSettings(*members, "what they begin with", Common(start)));
    if (!start.whole && !own) source = nullptr;  // a worker opens its part of it
  }
  if (!flags.checkpoint.empty() && flags.fresh && door.files.Exists(flags.checkpoint)) {
    auto removed = door.files.Remove(flags.checkpoint);
    if (!removed.ok() && door.files.Exists(flags.checkpoint)) return removed;  // else another process was faster
  }
  std::unique_ptr<TrainTrace> trace;
  if (!flags.trace.empty()) {
    trace = TRY(TrainTrace::Open(door.files, door.clock, flags.trace, place.rank, std::max(flags.workers.workers, 1)));
    start.trace = trace.get();
  }

  ProgressView view(flags.quiet || !speaks, door.clock);
  if (members != nullptr) members->Begin();
  auto worked = members != nullptr ? WorkAsMember(door, start, memory, pool, members->fabric(), std::move(source), view)
                : flags.workers.workers == 0 ? WorkAlone(door, start, memory, pool, std::move(source), view)
                                             : WorkTogether(door, start, memory, threads, view);
  view.Done();
  if (trace != nullptr && speaks && !worked.ok()) (void)trace->Write();  // as far as it went
  Outcome outcome = TRY(std::move(worked));
  if (members != nullptr) members->Part();
  if (!speaks) return {};
  if ((outcome.report.rows == 0 && outcome.report.epochs == 0) || outcome.report.progressive.rows() == 0)
    return Error{Code::kBadInput, Str(Join(flags.input.paths, ", "), ": no rows to learn from")};
  if (!flags.out.empty()) {
    TRY(model::SaveModel(door.files, flags.out, *outcome.model, *outcome.parameters, outcome.description,
                         {{"rows", Str(outcome.report.progressive.rows())}, {"epochs", Str(outcome.report.epochs)}},
                         outcome.rated, outcome.sums ? &*outcome.sums : nullptr));
  }
  if (outcome.topology.chosen == "measured" || !outcome.topology.usual)  // for whoever repeats this run
    flags.workers.algorithm_table = outcome.topology.table;
  if (to_file)
    TRY(base::WriteAtomic(door.files, flags.out + ".toml",
                          [&](base::OutputFile& file) { return file.Write(settings.Effective()); }));
  if (!flags.test.empty()) {
    const base::Span span(trace == nullptr ? nullptr : &trace->recorder(0), "evaluate", base::Trace::kTraining);
    TRY(Evaluate(door, flags, env, outcome));
  }
  if (trace != nullptr) TRY(trace->Write());
  if (to_file) (void)door.files.Remove(lock_path);
  outcome.seconds = base::Seconds(door.clock.Now() - started);
  WarnIfNothingLearned(door, flags, outcome);
  return Show(door, flags, outcome, view.curve(), trace.get());
}

Result<void> Run(Door& door, const Verb& verb, const std::vector<std::string>& arguments) {
  TrainFlags flags;
  base::Settings settings;
  flags.Register(settings);
  if (!TRY(ParseArguments(door, verb, arguments, settings))) return {};
  const fabric::Place place = TRY(flags.workers.FindPlace(door));
  const LauncherWatch launcher(place.mark);
  door.speaks = place.rank == 0;
  if (flags.workers.own()) flags.input.rank = place.rank;
  TRY(CheckTogether(door.files, flags));
  if (place.size == 1) return Train(door, flags, settings, place, nullptr);
  Members members(TRY(flags.workers.Connect(place, door)));
  auto trained = Train(door, flags, settings, place, &members);
  if (trained.ok()) return trained;
  members.Leave(trained.error());
  // Until training begins each stops by itself: who was told to stop misses those who were told so, too.
  if (trained.error().code == Code::kPeerLost && !members.began()) TRY(door.GoOn());
  return trained;
}

}  // namespace

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
