#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cold_flags.h"
#include "deploy_flags.h"
#include "serve/service.h"
#include "train/learning.h"
#include "verb.h"

namespace freshet::cli {
namespace {

struct ServeFlags {
  std::vector<std::string> models;
  std::string state = "freshet-state", method = "continuous", durability = "everysec", replace = "no";
  std::string listen = "127.0.0.1:8080", certificate, key, tokens, config;
  std::vector<std::string> hosts, datasets, history;
  bool insecure = false, idle = false, json = false, accept_loss = false;
  int threads = 0, retrain_epochs = 10;
  std::uint64_t buffer = 500, version_rows = 100'000, versions = 10, retrain_every = 0, new_classes = 0;
  std::uint64_t retain_mb = 0, pending_mb = 256, body_mb = 16;
  std::int64_t feedback_ttl = 3600, retain_days = 0;
  double period = 0, p99_target = 0.01, drain = 0;
  train::Learning learning{.use = train::Learning::Use::kReplay};
  DeployFlags deploy;
  ColdFlags cold;

  void Register(base::Settings& settings);
};

void ServeFlags::Register(base::Settings& settings) {
  settings.Group("Models");
  settings.Add("model", &models, "a model file to serve, as NAME=FILE or FILE (may be given again)",
               {.letter = 'm', .value = "NAME=FILE", .positional = true});
  settings.Add("state", &state, "where journals and versions are kept; the next start goes on from there",
               {.value = "DIR"});
  cold.Register(settings);
  settings.Add("history", &history,
               "rows that a model file was trained on, which iterations of a new state draw from (may be given again)",
               {.value = "FILE"});
  settings.Add(
      "replace", &replace,
      "a model file that is not the one the state was started from: no - it is ignored, yes - it takes over as "
      "a new version, relearn - and learns what the journal holds again",
      {.value = "WHAT", .choices = deploy::ReplaceNames()});
  settings.Group("Learning");
  settings.Add("method", &method, "how models are kept up to date",
               {.value = "NAME", .choices = deploy::MethodNames()});
  settings.Add("buffer", &buffer, "an iteration runs when so many observations wait (0: not by count)", {.value = "N"});
  settings.Add("period", &period, "and every so many seconds (0: not by time)", {.value = "S", .least = 0});
  settings.Add("idle", &idle, "and whenever predictions leave room");
  settings.Add("p99-target", &p99_target, "seconds; idle iterations keep away from it", {.value = "S", .least = 0});
  settings.Add("new-classes", &new_classes,
               "learn labels that a softmax model has not met as new classes, at most so many (0: refuse them)",
               {.value = "N", .most = 100'000});
  deploy.Register(settings);
  settings.Add("retrain-every", &retrain_every, "velox: retrain after so many observations", {.value = "N"});
  settings.Add("retrain-epochs", &retrain_epochs, "velox: passes of a retraining", {.value = "N", .least = 1});
  learning.RegisterLearning(settings);
  settings.Group("Keeping");
  settings.Add("durability", &durability,
               "acknowledge after: always - the disk has it; everysec, none - the system has",
               {.value = "LEVEL", .choices = {"always", "everysec", "none"}});
  settings.Add("version-rows", &version_rows, "keep a version after so many observations", {.value = "N"});
  settings.Add("versions", &versions, "so many are kept", {.value = "N", .least = 1});
  settings.Add("feedback-ttl", &feedback_ttl, "seconds a prediction with an id waits for its label",
               {.value = "S", .least = 0});
  settings.Add("pending-mb", &pending_mb,
               "memory for such predictions; beyond it the oldest go of the token that has most",
               {.value = "N", .least = 1, .most = 1 << 20});
  settings.Add("retain-mb", &retain_mb, "drop the oldest observations beyond this size (0: never)", {.value = "N"});
  settings.Add("retain-days", &retain_days, "and those older than this (0: never)", {.value = "N"});
  settings.Add("accept-loss", &accept_loss, "start although the journal has lost its end, which versions prove");
  settings.Add("datasets", &datasets, "a directory that data sets may be registered from (may be given again)",
               {.value = "DIR"});
  settings.Group("Network");
  settings.Add("listen", &listen, "address and port (port 0: any free one)", {.value = "ADDRESS:PORT"});
  settings.Add("certificate", &certificate, "TLS certificate (PEM)", {.value = "FILE"});
  settings.Add("key", &key, "TLS key (PEM)", {.value = "FILE"});
  settings.Add("tokens", &tokens, "file of bearer tokens: lines of 'scope name token', scope predict, learn or admin",
               {.value = "FILE"});
  settings.Add("allow-host", &hosts, "a name clients may call us by (may be given again)", {.value = "NAME"});
  settings.Add("insecure", &insecure, "listen beyond this machine without tokens or without TLS");
  settings.Add("body-mb", &body_mb, "largest request", {.value = "N", .least = 1, .most = 1024});
  settings.Add("drain", &drain, "seconds from the signal to stop, when it says it is not ready, until it closes",
               {.value = "S", .least = 0, .most = 3600});
  settings.Add("threads", &threads, "threads that answer (0: one a core)", {.value = "N", .least = 0, .most = 256});
  settings.Add("json", &json, "say where it listens as one JSON object");
  settings.Add("config", &config, "read settings from this TOML file", {.value = "FILE"});
}

Result<deploy::DeploymentOptions> OptionsFor(base::Files& files, const base::Settings& settings,
                                             const ServeFlags& flags, const std::string& name,
                                             const model::TrainedModel& trained) {
  deploy::DeploymentOptions options = TRY(serve::OptionsFor(files, Str(flags.state, "/", name), trained, flags.learning,
                                                            flags.deploy.recipe, flags.deploy.options));
  flags.deploy.Apply(settings, options);
  options.data.feedback_ttl = flags.feedback_ttl;
  options.data.pending_bytes = flags.pending_mb << 20;
  options.schedule.max_buffer_size = flags.buffer;
  options.schedule.period =
      std::chrono::duration_cast<base::Clock::Duration>(std::chrono::duration<double>(flags.period));
  options.schedule.when_idle = flags.idle;
  options.schedule.p99_target_seconds = flags.p99_target;
  options.journal.durability = TRY(deploy::ParseDurability(flags.durability));
  options.journal.retain_bytes = flags.retain_mb << 20;
  options.journal.retain_seconds = flags.retain_days * 86'400;
  options.retrain_rows = flags.retrain_every;
  options.retrain_epochs = flags.retrain_epochs;
  options.version_rows = flags.version_rows;
  options.versions_kept = flags.versions;
  options.accept_loss = flags.accept_loss;
  options.new_classes = flags.new_classes;
  options.replace = TRY(deploy::ParseReplace(flags.replace));
  return options;
}

// NAME=FILE, NAME:METHOD=FILE or FILE.
Result<std::vector<serve::Offer>> LoadAll(Door& door, const base::Settings& settings, const ServeFlags& flags,
                                          optimize::Memory& memory) {
  std::vector<serve::Offer> all;
  const auto add = [&](const std::string& name, model::TrainedModel trained, deploy::Method method) -> Result<void> {
    deploy::DeploymentOptions options = TRY(OptionsFor(door.files, settings, flags, name, trained));
    options.method = method;
    all.push_back({name, std::move(trained), std::move(options), flags.history});
    return {};
  };
  const deploy::Method method = TRY(deploy::ParseMethod(flags.method));
  for (const std::string& text : flags.models) {
    const auto equals = text.find('=');
    const std::string path = equals == std::string::npos ? text : text.substr(equals + 1);
    std::string name =
        equals == std::string::npos ? std::filesystem::path(text).stem().string() : text.substr(0, equals);
    deploy::Method own = method;
    if (const auto colon = name.find(':'); colon != std::string::npos) {
      own = TRY(deploy::ParseMethod(name.substr(colon + 1)));
      name.resize(colon);
    }
    TRY(add(name, TRY(model::LoadModel(door.files, path, memory)), own));
  }
  if (!flags.cold.name.empty())
    TRY(add(flags.cold.name, TRY(flags.cold.Make(door.files, door.log, memory, flags.learning.seed)), method));
  if (all.empty())
    return Error{Code::kInvalid,
                 "nothing to serve: give a model file, or --cold NAME for one that starts with no data"};
  return all;
}

Result<void> ParseListen(const std::string& text, serve::HttpOptions& http) {
  const auto colon = text.rfind(':');
  const auto wrong = [&] { return Error{Code::kInvalid, Str("--listen ", Quoted(text), ": expected ADDRESS:PORT")}; };
  if (colon == std::string::npos) return wrong();
  http.address = text.substr(0, colon);
  if (http.address.size() > 2 && http.address.front() == '[')
    http.address = http.address.substr(1, http.address.size() - 2);
  const auto end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + colon + 1, end, http.port);
  if (parsed.ec != std::errc() || parsed.ptr != end || http.port < 0 || http.port > 65'535) return wrong();
  return {};
}

Result<void> Run(Door& door, const Verb& verb, const std::vector<std::string>& arguments) {
  ServeFlags flags;
  base::Settings settings;
  flags.Register(settings);
  if (!TRY(ParseArguments(door, verb, arguments, settings))) return {};
  if (!flags.history.empty() && (flags.models.size() != 1 || !flags.cold.name.empty()))
    return Error{Code::kInvalid, "--history is what one model file was trained on; serve that one alone"};
  optimize::HeapMemory memory;
  base::InlineExecutor executor;
  serve::ServiceOptions options;
  TRY(ParseListen(flags.listen, options.http));
  options.http.allowed_hosts = flags.hosts;
  options.http.certificate = flags.certificate;
  options.http.key = flags.key;
  options.http.token_file = flags.tokens;
  options.http.insecure = flags.insecure;
  options.http.limits.body_bytes = flags.body_mb << 20;
  options.threads = flags.threads;
  options.datasets = flags.datasets;
  options.drain = std::chrono::duration_cast<base::Clock::Duration>(std::chrono::duration<double>(flags.drain));
  options.commit = ProgramCommit();
  const auto service = TRY(serve::Service::Open(door.env(executor), memory, std::move(options),
                                                TRY(LoadAll(door, settings, flags, memory)), &door.stop));
  std::string said;
  if (flags.json) {
    nlohmann::ordered_json json = {{"schema", 1}, {"address", service->address()}, {"port", service->port()}};
    for (serve::ServedModel* const model : service->models()) {
      json["models"].push_back(model->name());
      if (model->deployment().start_ignored()) json["ignored_files"].push_back(model->name());
    }
    said = json.dump() + "\n";
  } else {
    for (serve::ServedModel* const model : service->models()) {
      const auto stats = model->deployment().stats();
      said += Str("model    ", model->name(), ": ", model->deployment().model().config().kind, ", ",
                  deploy::Name(model->deployment().options().method), ", ", Grouped(stats.observations),
                  " observations so far\n");
      if (model->deployment().start_ignored())
        said += Str("note     ", model->name(),
                    ": its file is not the one that the state was started from, and is not used; --replace yes lets it "
                    "take over\n");
    }
    said += Str("serving  ", service->address(), "  (Ctrl-C stops; the state is in ", flags.state, ")\n");
  }
  TRY(Print(door.files, said));
  return service->Run(door.stop);
}

}  // namespace

extern const Verb kServe = {
    "serve", "models behind HTTP that go on learning", "MODEL… [--state DIR] [--listen ADDRESS:PORT]",
    "  freshet serve ctr.model                                 http://127.0.0.1:8080/ shows how it does\n"
    "  freshet serve a=one.model b:velox=two.model --state /var/lib/freshet --durability always\n"
    "  freshet serve --cold clicks --features 28                starts with no data\n"
    "  freshet serve --cold visits --columns age,income,city:category,day:date --classes no,yes\n"
    "  curl -H 'Content-Type: application/json' localhost:8080/v2/models/ctr/infer \\\n"
    "    -d '{\"inputs\":[{\"name\":\"x\",\"shape\":[1,3],\"datatype\":\"FP32\",\"data\":[1,2,3]}]}'\n"
    "  curl -H 'Content-Type: application/json' localhost:8080/v2/models/ctr/learn \\\n"
    "    -d '{\"inputs\":[{\"name\":\"x\",\"shape\":[1,3],\"datatype\":\"FP32\",\"data\":[1,2,3]},\n"
    "                   {\"name\":\"labels\",\"shape\":[1],\"datatype\":\"INT64\",\"data\":[1]}]}'\n",
    Run};

}  // namespace freshet::cli
