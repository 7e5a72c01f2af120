#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/metrics.h"
#include "cold_flags.h"
#include "deploy_flags.h"
#include "model/network/network.h"
#include "serve/api.h"
#include "serve/http_server.h"
#include "train/learning.h"
#include "verb.h"

namespace freshet::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

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
  deploy::DeploymentOptions options = TRY(flags.deploy.For(settings, trained.model->traits()));
  train::Learning learning = flags.learning;
  learning.model = trained.model->config().kind;
  if (learning.optimizer == "auto")  // what another rule has summed up would be lost
    learning.optimizer = deploy::OptimizerKept(files, Str(flags.state, "/", name, "/versions")).value_or("auto");
  learning.SettleDefaults(trained.description);
  if (learning.schedule == "auto") learning.schedule = "constant";
  options.optimizer = learning.Optimizer();
  options.directory = flags.state + "/" + name;
  options.data.feedback_ttl = flags.feedback_ttl;
  options.data.pending_bytes = flags.pending_mb << 20;
  options.data.seed = options.seed = flags.learning.seed;
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
  options.version_gap = seconds(1);
  options.versions_kept = flags.versions;
  options.accept_loss = flags.accept_loss;
  options.new_classes = flags.new_classes;
  options.replace = TRY(deploy::ParseReplace(flags.replace));
  return options;
}

bool GoodName(std::string_view name) {
  return !name.empty() && name.size() <= 64 && name[0] != '.' &&
         name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-+") ==
             std::string::npos;
}

struct Named {
  std::string name;
  model::TrainedModel trained;
  deploy::Method method;
};

// NAME=FILE, NAME:METHOD=FILE or FILE.
Result<std::vector<Named>> LoadAll(Door& door, const ServeFlags& flags, optimize::Memory& memory) {
  std::vector<Named> all;
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
    all.push_back({name, TRY(model::LoadModel(door.files, path, memory)), own});
  }
  if (!flags.cold.name.empty())
    all.push_back({flags.cold.name, TRY(flags.cold.Make(door.files, door.log, memory, flags.learning.seed)), method});
  for (const auto& served : all) model::network::WarnOfSlowLayers(*served.trained.model, door.log);
  if (all.empty())
    return Error{Code::kInvalid,
                 "nothing to serve: give a model file, or --cold NAME for one that starts with no data"};
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!GoodName(all[i].name))
      return Error{Code::kInvalid, Str("model name ", Quoted(all[i].name),
                                       ": expected up to 64 letters, digits, _ . - +; "
                                       "give one as NAME=FILE")};
    for (std::size_t j = 0; j < i; ++j)
      if (all[i].name == all[j].name) return Error{Code::kInvalid, Str("two models are called ", Quoted(all[i].name))};
  }
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

// The threads of the server: those that answer, one that writes and learns, one that trains, one for what would block,
// one that looks at the clock.
void RunServer(Door& door, serve::Api& api, serve::HttpServer& server, deploy::Bell& writer, deploy::Bell& trainer,
               deploy::Bell& slow_bell, deploy::Background& slow, int io_threads, base::Clock::Duration drain) {
  std::atomic<int> answering{io_threads};
  std::atomic<bool> stop{false};
  const auto end_all = [&] {
    stop = true;
    writer.Ring();
    trainer.Ring();
    slow_bell.Ring();
  };
  base::ThreadPool pool(io_threads + 4);
  pool.Run(io_threads + 4, [&](int task) {
    if (task < io_threads) {
      server.Run();
      if (--answering == 0) end_all();
    } else if (task == io_threads) {
      while (true) {
        const bool last = stop.load();
        bool busy = false;
        for (serve::ServedModel* const model : api.models()) busy = model->deployment().Turn() || busy;
        if (last && !busy) break;
        if (!busy) writer.Wait(milliseconds(20));
      }
    } else if (task == io_threads + 1) {
      base::YieldToOthers();
      while (!stop.load()) {
        bool busy = false;
        for (serve::ServedModel* const model : api.models()) busy = model->deployment().background().RunOne() || busy;
        if (!busy) trainer.Wait(milliseconds(200));
      }
    } else if (task == io_threads + 2) {
      while (!stop.load())
        if (!slow.RunOne()) slow_bell.Wait(milliseconds(200));
    } else {
      auto next = door.clock.Now();
      std::optional<base::Clock::Duration> close_at;
      while (!stop.load()) {
        if (door.stop.load()) {
          api.Drain();  // balancers look elsewhere; those that come all the same are answered
          if (!close_at) close_at = door.clock.Now() + drain;
          if (door.clock.Now() >= *close_at) server.Stop(seconds(5));
        }
        if (door.clock.Now() >= next) {
          api.Tick();
          for (serve::ServedModel* const model : api.models()) model->deployment().Sync();
          next = std::max(next + seconds(1), door.clock.Now());  // a second missed is not made up for
        }
        door.clock.Sleep(milliseconds(50));
      }
    }
  });
}

// What a model file was trained on joins the history of a new state, before anybody is answered.
Result<void> JoinHistory(Door& door, deploy::Deployment& deployment, const std::vector<std::string>& paths) {
  if (paths.empty() || deployment.stats().history > 0) return {};
  const auto joined = std::make_shared<std::optional<Result<std::string>>>();
  deployment.PostDataset(
      paths, [joined](const Result<std::string>& result) { *joined = result; }, deploy::Deployment::Met::kKnown);
  while (!*joined) {
    TRY(door.GoOn());
    deployment.Turn();
    deployment.background().RunOne();
  }
  TRY(**joined);
  return {};
}

Result<void> Run(Door& door, const Verb& verb, const std::vector<std::string>& arguments) {
  ServeFlags flags;
  base::Settings settings;
  flags.Register(settings);
  if (!TRY(ParseArguments(door, verb, arguments, settings))) return {};
  if (!flags.history.empty() && (flags.models.size() != 1 || !flags.cold.name.empty()))
    return Error{Code::kInvalid, "--history is what one model file was trained on; serve that one alone"};
  const int io_threads = Threads(flags.threads);
  optimize::HeapMemory memory;
  base::InlineExecutor executor;
  const base::Env env = door.env(executor);
  base::Metrics metrics;
  deploy::Bell writer, trainer, slow_bell;
  deploy::Background slow(slow_bell);
  deploy::LocalRuntime runtime;

  serve::ApiOptions api_options;
  api_options.version = ProgramVersion();
  api_options.commit = ProgramCommit();
  api_options.threads = io_threads;
  for (const std::string& root : flags.datasets) {
    std::error_code error;
    const auto full = std::filesystem::canonical(root, error);
    if (error) return Error{Code::kNotFound, Str("--datasets ", root, ": ", error.message())};
    api_options.dataset_roots.push_back(full.string());
  }
  serve::Api api(api_options, door.files, door.clock, metrics, slow);
  for (Named& named : TRY(LoadAll(door, flags, memory))) {
    deploy::DeploymentOptions options = TRY(OptionsFor(door.files, settings, flags, named.name, named.trained));
    options.method = named.method;
    deploy::Deployment::Doors doors{api.readers(), serve::Api::CompanionOf(options.new_classes > 0), &writer, &trainer};
    auto deployment = TRY(
        deploy::Deployment::Open(env, std::move(options), runtime, memory, std::move(named.trained), std::move(doors))
            .While(Str("starting model ", named.name)));
    TRY(JoinHistory(door, *deployment, flags.history).While(Str("reading the history of model ", named.name)));
    api.Add(std::make_unique<serve::ServedModel>(named.name, std::move(deployment), door.clock, metrics));
  }

  serve::HttpOptions http;
  TRY(ParseListen(flags.listen, http));
  http.allowed_hosts = flags.hosts;
  http.certificate = flags.certificate;
  http.key = flags.key;
  http.token_file = flags.tokens;
  http.insecure = flags.insecure;
  http.reserved_paths = api.ReservedPaths();
  http.limits.body_bytes = flags.body_mb << 20;
  const auto server = TRY(serve::HttpServer::Listen(
      http, door.clock, door.log, metrics, [&api](serve::Exchange exchange) { api.Handle(std::move(exchange)); }));
  const std::string host = http.address.find(':') != std::string::npos ? Str("[", http.address, "]") : http.address;
  const std::string address = Str(flags.certificate.empty() ? "http://" : "https://", host, ":", server->port(), "/");
  std::string said;
  if (flags.json) {
    nlohmann::ordered_json json = {{"schema", 1}, {"address", address}, {"port", server->port()}};
    for (serve::ServedModel* const model : api.models()) {
      json["models"].push_back(model->name());
      if (model->deployment().start_ignored()) json["ignored_files"].push_back(model->name());
    }
    said = json.dump() + "\n";
  } else {
    for (serve::ServedModel* const model : api.models()) {
      const auto stats = model->deployment().stats();
      said += Str("model    ", model->name(), ": ", model->deployment().model().config().kind, ", ",
                  deploy::Name(model->deployment().options().method), ", ", Grouped(stats.observations),
                  " observations so far\n");
      if (model->deployment().start_ignored())
        said += Str("note     ", model->name(),
                    ": its file is not the one that the state was started from, and is not used; --replace yes lets it "
                    "take over\n");
    }
    said += Str("serving  ", address, "  (Ctrl-C stops; the state is in ", flags.state, ")\n");
  }
  TRY(Print(door.files, said));
  const auto drain = std::chrono::duration_cast<base::Clock::Duration>(std::chrono::duration<double>(flags.drain));
  RunServer(door, api, *server, writer, trainer, slow_bell, slow, io_threads, drain);
  for (serve::ServedModel* const model : api.models()) TRY(model->deployment().Close());
  return {};
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
