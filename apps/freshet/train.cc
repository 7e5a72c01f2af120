#include <nlohmann/json.hpp>
#include <set>

#include "input_flags.h"
#include "model/model_file.h"
#include "model_flags.h"
#include "progress.h"
#include "results.h"
#include "train/lbfgs_trainer.h"
#include "verb.h"

namespace freshet::cli {
namespace {

struct TrainFlags {
  InputFlags input;
  ModelFlags learning{ModelFlags::Use::kTraining};
  int epochs = 0, threads = 0, patience = 0;
  std::uint64_t batch = 0, prefetch = 4;
  double holdout = 0, checkpoint_seconds = 60;
  std::int64_t holdout_after = 0;
  bool deterministic = true, shuffle = false, fresh = false, json = false, quiet = false;
  std::string out, from, cache, checkpoint, curve, config, test, scratch = "/tmp";

  void Register(base::Settings& settings);
};

void TrainFlags::Register(base::Settings& settings) {
  settings.Group("Result");
  settings.Add("out", &out, "the model file to write (safetensors)", {.letter = 'o', .value = "FILE"});
  settings.Add("test", &test, "evaluate on this file afterwards", {.letter = 't', .value = "FILE"});
  settings.Add("curve", &curve, "draw the learning curve into this SVG file, and below the results", {.value = "FILE"});
  settings.Add("json", &json, "results as one JSON object");
  settings.Add("quiet", &quiet, "no progress");
  input.Register(settings, InputFlags::Use::kTraining);
  settings.Group("Model");
  learning.RegisterModel(settings);
  settings.Add("from", &from, "start from this model file", {.letter = 'i', .value = "FILE"});
  settings.Group("Learning");
  settings.Add("epochs", &epochs, "passes over the data (0: 1, factorization 20, lbfgs 50, networks 10)",
               {.letter = 'e', .value = "N", .least = 0});
  learning.RegisterLearning(settings);
  settings.Add("batch", &batch, "rows per update (0: 1, networks 32)", {.value = "N", .least = 0, .most = 1 << 20});
  settings.Add("shuffle", &shuffle,
               "mix rows within 16 MB (networks: 64 MB, and by default), and blocks from the second epoch on");
  settings.Add("prefetch", &prefetch, "blocks of rows read ahead of need (networks)",
               {.value = "N", .least = 1, .most = 1024});
  settings.Add("threads", &threads, "threads (0: every core)", {.value = "N", .least = 0, .most = 1024});
  settings.Add("deterministic", &deterministic,
               "the same result for any number of threads; --no-deterministic lets them update a sparse model at once");
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
  settings.Add("cache", &cache, "keep parsed rows here", {.letter = 'c', .value = "FILE"});
  settings.Add("scratch", &scratch, "where temporary files go", {.value = "DIR"});
  settings.Add("config", &config, "read settings from this TOML file", {.value = "FILE"});
}

// Replaces every "auto" and unset number by what will be used, so that the effective configuration says it all.
void SettleDefaults(TrainFlags& flags, const base::Settings& settings, const data::Description& description) {
  ModelFlags& learning = flags.learning;
  learning.SettleDefaults(description);
  const bool network = learning.IsNetwork();
  if (flags.epochs == 0)
    flags.epochs = learning.optimizer == "lbfgs" ? 50 : (learning.model == "factorization" ? 20 : network ? 10 : 1);
  if (flags.batch == 0) flags.batch = network ? 32 : 1;
  if (network && !settings.Given("shuffle")) flags.shuffle = true;
  // One pass may be a stream, which has no end to slow down for; several passes settle at theirs.
  if (learning.schedule == "auto") learning.schedule = flags.epochs > 1 ? "linear" : "constant";
}

struct Outcome {
  train::Report report;
  std::optional<train::Evaluation> test;
  std::uint64_t bad_rows = 0;
  double seconds = 0;
};

std::string HowLearned(const TrainFlags& flags) {
  const ModelFlags& learning = flags.learning;
  if (learning.model == "kmeans") return Str(learning.clusters, " clusters");
  if (learning.optimizer == "lbfgs") return "lbfgs";
  return Str(learning.optimizer, " at rate ", learning.rate);
}

Result<void> Show(Door& door, const TrainFlags& flags, const model::Model& model,
                  const optimize::Parameters& parameters, const Outcome& outcome, const Curve& curve) {
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
    return Print(door.files, json.dump() + "\n");
  }
  const std::string& kind = model.config().kind == "network" ? flags.learning.model : model.config().kind;
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
  if (!flags.out.empty())
    out += Str("saved        ", flags.out,
               door.files.IsDevice(flags.out) ? "" : Str(" (settings in ", flags.out, ".toml)"), "\n");
  if (!flags.curve.empty()) out += Str("\n", TerminalChart(lines, "rows"), "curve        ", flags.curve, "\n");
  return Print(door.files, out);
}

// The settings that must be the same when a run is resumed: all but those that say where things go.
std::string Fingerprint(const base::Settings& settings) {
  const std::set<std::string_view> free = {
      "out",   "test",    "curve",    "json",         "quiet", "threads", "checkpoint", "checkpoint-seconds",
      "fresh", "scratch", "bad-rows", "max-bad-rows", "cache"};
  std::string kept;
  const std::string effective = settings.Effective();
  for (const std::string_view line : Split(effective, '\n'))
    if (!free.contains(line.substr(0, line.find(' ')))) kept += Str(line, "\n");
  return kept;
}

Result<void> Run(Door& door, const Verb& verb, const std::vector<std::string>& arguments) {
  TrainFlags flags;
  base::Settings settings;
  flags.Register(settings);
  if (!TRY(ParseArguments(door, verb, arguments, settings))) return {};
  const auto started = door.clock.Now();
  base::ThreadPool pool(Threads(flags.threads));
  const base::Env env = door.env(pool);
  if (flags.out == "-") return Error{Code::kInvalid, "--out: a model goes to a file, not to standard output"};
  if (!flags.test.empty()) TRY(door.files.Glob(flags.test));  // now rather than after hours of training
  const bool to_file = !flags.out.empty() && !door.files.IsDevice(flags.out);
  const std::string lock_path = flags.out + ".lock";
  const auto lock = to_file ? TRY(door.files.Lock(lock_path)) : nullptr;

  optimize::HeapMemory memory;
  TRY(flags.learning.ChooseTask(door.files, flags.input));
  data::Description description;
  std::optional<model::TrainedModel> earlier;
  if (!flags.from.empty()) {
    earlier = TRY(model::LoadModel(door.files, flags.from, memory));
    description = earlier->description;
    flags.learning.model = earlier->model->config().kind;
    flags.learning.loss = earlier->model->config().loss;
  }
  auto source = TRY(flags.input.Open(env, description));
  if (!earlier) TRY(flags.input.FindAllClasses(env, description));
  SettleDefaults(flags, settings, description);
  if (flags.learning.IsNetwork() && !earlier) TRY(flags.input.SettleView(env, *source, description));
  if (!flags.learning.IsNetwork() && (flags.input.crop > 0 || flags.input.mirror || settings.Given("subtract-mean")))
    return Error{Code::kInvalid, "--crop, --mirror and --subtract-mean are for networks; name one with --model"};
  const auto model =
      TRY(model::Model::Make(earlier ? earlier->model->config() : TRY(flags.learning.Config(description))));
  const auto optimizer = TRY(optimize::Optimizer::Make(flags.learning.Optimizer(), memory));
  auto parameters = TRY(model->NewParameters(memory, optimizer->slots()));
  if (earlier) parameters.CopyFrom(earlier->parameters);

  ProgressView view(flags.quiet, door.clock);
  train::TrainOptions options;
  options.epochs = flags.epochs;
  options.batch = flags.batch;
  options.deterministic = flags.deterministic;
  options.shuffle = flags.shuffle;
  if (flags.learning.IsNetwork()) options.shuffle_window_bytes = 64 << 20;
  options.mirror = flags.input.mirror;
  options.prefetch = flags.prefetch;
  options.seed = flags.learning.seed;
  options.hold_out = {flags.holdout, flags.holdout_after, flags.learning.seed};
  options.patience = flags.patience;
  options.cache_path = flags.cache;
  options.scratch_directory = flags.scratch;
  options.checkpoint_path = flags.checkpoint;
  options.checkpoint_seconds = flags.checkpoint_seconds;
  options.fingerprint = Fingerprint(settings);
  options.progress = [&](const train::Progress& progress) { view.Show(progress); };
  options.stop = &door.stop;
  if (!flags.checkpoint.empty() && flags.fresh && door.files.Exists(flags.checkpoint))
    TRY(door.files.Remove(flags.checkpoint));

  Outcome outcome;
  auto trained = flags.learning.optimizer == "lbfgs"
                     ? train::TrainByLbfgs(env, options, *model, parameters, description, *source, flags.learning.l2)
                     : train::Trainer(env, options, *model, parameters, *optimizer, description).Run(*source);
  view.Done();
  outcome.report = TRY(std::move(trained));
  outcome.bad_rows = BadRows(*source);
  if (outcome.report.rows == 0 && outcome.report.epochs == 0)
    return Error{Code::kBadInput, Str(Join(flags.input.data, ", "), ": no rows to learn from")};
  if (outcome.report.progressive.rows() == 0)
    return Error{Code::kBadInput, Str(Join(flags.input.data, ", "), ": no rows to learn from")};

  if (!flags.out.empty()) {
    TRY(model::SaveModel(door.files, flags.out, *model, parameters, description,
                         {{"rows", Str(outcome.report.progressive.rows())}, {"epochs", Str(outcome.report.epochs)}}));
  }
  if (to_file)
    TRY(base::WriteAtomic(door.files, flags.out + ".toml",
                          [&](base::OutputFile& file) { return file.Write(settings.Effective()); }));
  if (!flags.test.empty()) {
    InputFlags test;
    test.data = {flags.test};
    test.reader.grow = false;
    test.reader.labelled = flags.input.reader.labelled;
    test.reader.max_bad_rows = flags.input.reader.max_bad_rows;
    const auto rows = TRY(test.Open(env, description));
    outcome.test = TRY(train::Evaluate(env, *model, parameters, description, *rows, &door.stop));
  }
  if (to_file) (void)door.files.Remove(lock_path);
  outcome.seconds = base::Seconds(door.clock.Now() - started);
  return Show(door, flags, *model, parameters, outcome, view.curve());
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
