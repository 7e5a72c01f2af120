#include "service.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <thread>

#include "attend.h"
#include "model.h"
#include "options.h"
#include "serve/service.h"
#include "world.h"

namespace nb = nanobind;

namespace freshet::python {
namespace {

// What may be said of a server, where the command line has flags.
struct ServeOptions {
  std::string address = "127.0.0.1", certificate, key, tokens, method = "continuous", durability = "everysec",
              replace = "no", recipe = "auto";
  int port = 0, threads = 0;
  bool insecure = false;
  std::vector<std::string> hosts;
  std::uint64_t buffer = 500, version_rows = 100'000, versions = 10, new_classes = 0;
  std::int64_t feedback_ttl = 3600;
  double period = 0;
  train::Learning learning{.use = train::Learning::Use::kReplay};

  void Register(base::Settings& settings) {
    settings.Group("Server");
    settings.Add("address", &address, "to listen at, numeric");
    settings.Add("port", &port, "0: any free one", {.least = 0, .most = 65'535});
    settings.Add("certificate", &certificate, "TLS certificate (PEM)");
    settings.Add("key", &key, "TLS key (PEM)");
    settings.Add("tokens", &tokens, "file of bearer tokens");
    settings.Add("allow-host", &hosts, "names clients may call us by", {.commas = true});
    settings.Add("insecure", &insecure, "listen beyond this machine without tokens or without TLS");
    settings.Add("threads", &threads, "that answer; 0: one a core", {.least = 0, .most = 256});
    settings.Add("method", &method, "how models are kept up to date", {.choices = deploy::MethodNames()});
    settings.Add("recipe", &recipe, "how iterations train");
    settings.Add("buffer", &buffer, "an iteration runs when so many observations wait");
    settings.Add("period", &period, "and every so many seconds", {.least = 0});
    settings.Add("durability", &durability, "what an acknowledgement means",
                 {.choices = {"always", "everysec", "none"}});
    settings.Add("replace", &replace, "a model that is not the one the state was started from",
                 {.choices = deploy::ReplaceNames()});
    settings.Add("version-rows", &version_rows, "a version is kept after so many observations");
    settings.Add("versions", &versions, "so many are kept", {.least = 1});
    settings.Add("new-classes", &new_classes, "labels that no class has may become so many", {.most = 100'000});
    settings.Add("feedback-ttl", &feedback_ttl, "seconds a prediction waits for its label", {.least = 0});
    learning.RegisterLearning(settings);
  }

  Result<deploy::DeploymentOptions> Deployment(const std::string& directory, const model::TrainedModel& trained) const {
    auto options = TRY(serve::OptionsFor(World::Get().files(), directory, trained, learning, recipe));
    options.method = TRY(deploy::ParseMethod(method));
    options.replace = TRY(deploy::ParseReplace(replace));
    options.journal.durability = TRY(deploy::ParseDurability(durability));
    options.schedule.max_buffer_size = buffer;
    options.schedule.period = std::chrono::duration_cast<base::Clock::Duration>(std::chrono::duration<double>(period));
    options.version_rows = version_rows;
    options.versions_kept = versions;
    options.new_classes = new_classes;
    options.data.feedback_ttl = feedback_ttl;
    return options;
  }
};

// A service and the thread it runs on.
//
// Threads: any, one at a time. Blocking: Stop, until all is on the disk.
class Server {
 public:
  static Result<std::unique_ptr<Server>> Open(const std::vector<std::pair<std::string, Model*>>& models,
                                              const std::string& state, const ServeOptions& how) {
    World& world = World::Get();
    std::unique_ptr<Server> server(new Server);
    std::vector<serve::Offer> offers;
    for (const auto& [name, model] : models) {
      auto trained = TRY(model->Copy(world.memory()));
      auto options = TRY(how.Deployment(Str(state, "/", name), trained));
      offers.push_back({name, std::move(trained), std::move(options)});
    }
    serve::ServiceOptions options;
    options.http.address = how.address;
    options.http.port = how.port;
    options.http.certificate = how.certificate;
    options.http.key = how.key;
    options.http.token_file = how.tokens;
    options.http.insecure = how.insecure;
    options.http.allowed_hosts = how.hosts;
    options.threads = how.threads;
    server->service_ =
        TRY(serve::Service::Open(world.env(server->executor_), world.memory(), std::move(options), std::move(offers)));
    server->address_ = server->service_->address();
    server->port_ = server->service_->port();
    server->thread_ = std::thread([raw = server.get()] { raw->ended_ = raw->service_->Run(raw->stop_); });
    return server;
  }
  ~Server() {
    if (thread_.joinable()) (void)Stop();
  }

  const std::string& address() const { return address_; }
  int port() const { return port_; }
  Result<void> Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    service_ = nullptr;  // and lets go of the state, for the next server
    return ended_;
  }

 private:
  Server() = default;
  base::InlineExecutor executor_;
  std::unique_ptr<serve::Service> service_;
  std::string address_;
  int port_ = 0;
  std::atomic<bool> stop_{false};
  Result<void> ended_;  // read once the thread is joined
  std::thread thread_;
};

std::unique_ptr<Server> Open(const std::vector<std::pair<std::string, Model*>>& models, const std::string& state,
                             const nb::dict& options) {
  ServeOptions how;
  base::Settings settings;
  how.Register(settings);
  SetOptions(options, settings);
  std::atomic<bool> stop{false};
  return Attended<std::unique_ptr<Server>>(stop, {}, [&] { return Server::Open(models, state, how); });
}

void Stop(Server& server) {
  std::atomic<bool> stop{false};
  Attended<void>(stop, {}, [&] { return server.Stop(); });
}

}  // namespace

void BindService(nb::module_& module) {
  nb::class_<Server>(module, "Server")
      .def_static("open", &Open, nb::arg("models"), nb::arg("state"), nb::arg("options"))
      .def_prop_ro("address", &Server::address)
      .def_prop_ro("port", &Server::port)
      .def("stop", &Stop);
}

}  // namespace freshet::python
