#include "serve/service.h"

#include <algorithm>
#include <filesystem>

#include "base/cores.h"
#include "base/option.h"
#include "base/thread_pool.h"
#include "base/version.h"
#include "deploy/recipe.h"
#include "model/network/network.h"

namespace freshet::serve {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

bool GoodName(std::string_view name) {
  return !name.empty() && name.size() <= 64 && name[0] != '.' &&
         name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-+") ==
             std::string::npos;
}

Result<void> CheckNames(const std::vector<Offer>& models) {
  for (std::size_t i = 0; i < models.size(); ++i) {
    if (!GoodName(models[i].name))
      return Error{Code::kInvalid, Str("model name ", Quoted(models[i].name),
                                       ": expected up to 64 letters, digits, _ . - +; "
                                       "give one as NAME=FILE")};
    for (std::size_t j = 0; j < i; ++j)
      if (models[i].name == models[j].name)
        return Error{Code::kInvalid, Str("two models are called ", Quoted(models[i].name))};
  }
  return {};
}

// What a model file was trained on joins the history of a new state, before anybody is answered.
Result<void> JoinHistory(deploy::Deployment& deployment, const std::vector<std::string>& paths,
                         const std::atomic<bool>* stop) {
  if (paths.empty() || deployment.stats().history > 0) return {};
  const auto joined = std::make_shared<std::optional<Result<std::string>>>();
  deployment.PostDataset(
      paths, [joined](const Result<std::string>& result) { *joined = result; }, deploy::Deployment::Met::kKnown);
  while (!*joined) {
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) return Error{Code::kStopped, "stopped"};
    deployment.Turn();
    deployment.background().RunOne();
  }
  TRY(**joined);
  return {};
}

ApiOptions ApiOptionsOf(const ServiceOptions& options, std::vector<std::string> dataset_roots) {
  ApiOptions api;
  api.version = std::string(Version());
  api.commit = options.commit;
  api.threads = options.threads;
  api.dataset_roots = std::move(dataset_roots);
  return api;
}

}  // namespace

Result<deploy::DeploymentOptions> OptionsFor(base::Files& files, std::string directory,
                                             const model::TrainedModel& trained, train::Learning learning,
                                             const std::string& recipe, deploy::DeploymentOptions options) {
  const model::Traits traits = trained.model->traits();
  TRY(deploy::UseRecipe(recipe == "auto" ? deploy::RecipeFor(traits) : recipe, traits, options));
  learning.model = trained.model->config().kind;
  if (learning.optimizer == "auto")  // what another rule has summed up would be lost
    learning.optimizer = deploy::OptimizerKept(files, directory + "/versions").value_or("auto");
  learning.SettleDefaults(trained.description);
  if (learning.schedule == "auto") learning.schedule = "constant";
  options.optimizer = learning.Optimizer();
  options.directory = std::move(directory);
  options.data.seed = options.seed = learning.seed;
  options.retrain_epochs = 10;
  options.version_gap = seconds(1);
  return options;
}

Service::Service(const base::Env& env, ServiceOptions options, std::vector<std::string> dataset_roots)
    : env_(env),
      options_(std::move(options)),
      writer_(env.clock),
      trainer_(env.clock),
      slow_bell_(env.clock),
      slow_(slow_bell_),
      api_(ApiOptionsOf(options_, std::move(dataset_roots)), env.files, env.clock, metrics_, slow_) {}

Result<std::unique_ptr<Service>> Service::Open(const base::Env& env, optimize::Memory& memory, ServiceOptions options,
                                               std::vector<Offer> models, const std::atomic<bool>* stop) {
  TRY(CheckNames(models));
  if (options.threads == 0) options.threads = base::AvailableCores();
  std::vector<std::string> roots;
  for (const std::string& root : options.datasets) {
    std::error_code error;
    const auto full = std::filesystem::canonical(root, error);
    if (error) return Error{Code::kNotFound, Str(Option("datasets"), " ", root, ": ", error.message())};
    roots.push_back(full.string());
  }
  std::unique_ptr<Service> service(new Service(env, std::move(options), std::move(roots)));
  for (Offer& offer : models) TRY(service->Add(memory, std::move(offer), stop));
  TRY(service->Listen());
  return service;
}

Result<void> Service::Add(optimize::Memory& memory, Offer offer, const std::atomic<bool>* stop) {
  model::network::WarnOfSlowLayers(*offer.trained.model, env_.log);
  deploy::Deployment::Doors doors{api_.readers(), Api::CompanionOf(offer.options.new_classes > 0), &writer_, &trainer_};
  auto deployment = TRY(deploy::Deployment::Open(env_, std::move(offer.options), runtime_, memory,
                                                 std::move(offer.trained), std::move(doors))
                            .While(Str("starting model ", offer.name)));
  TRY(JoinHistory(*deployment, offer.history, stop).While(Str("reading the history of model ", offer.name)));
  api_.Add(std::make_unique<ServedModel>(offer.name, std::move(deployment), env_.clock, metrics_));
  return {};
}

Result<void> Service::Listen() {
  HttpOptions http = options_.http;
  http.reserved_paths = api_.ReservedPaths();
  server_ = TRY(HttpServer::Listen(http, env_.clock, env_.log, metrics_,
                                   [this](Exchange exchange) { api_.Handle(std::move(exchange)); }));
  const std::string host = http.address.find(':') != std::string::npos ? Str("[", http.address, "]") : http.address;
  address_ = Str(http.certificate.empty() ? "http://" : "https://", host, ":", server_->port(), "/");
  return {};
}

Result<void> Service::Run(const std::atomic<bool>& stop) {
  const int answering = options_.threads;
  std::atomic<int> left{answering};
  base::ThreadPool pool(answering + 4);
  pool.Run(answering + 4, [&](int task) {
    switch (std::max(task - answering, -1)) {
      case -1:
        server_->Run();
        if (--left == 0) EndAll();
        break;
      case 0:
        return Write();
      case 1:
        return Train();
      case 2:
        while (!ended_.load())
          if (!slow_.RunOne()) slow_bell_.Wait(milliseconds(200));
        break;
      default:
        WatchTheClock(stop);
    }
  });
  for (ServedModel* const model : api_.models()) TRY(model->deployment().Close());
  return {};
}

void Service::EndAll() {
  ended_ = true;
  writer_.Ring();
  trainer_.Ring();
  slow_bell_.Ring();
}

void Service::Write() {
  while (true) {
    const bool last = ended_.load();
    bool busy = false;
    for (ServedModel* const model : api_.models()) busy = model->deployment().Turn() || busy;
    if (last && !busy) return;
    if (!busy) writer_.Wait(milliseconds(20));
  }
}

void Service::Train() {
  base::YieldToOthers();
  while (!ended_.load()) {
    bool busy = false;
    for (ServedModel* const model : api_.models()) busy = model->deployment().background().RunOne() || busy;
    if (!busy) trainer_.Wait(milliseconds(200));
  }
}

void Service::WatchTheClock(const std::atomic<bool>& stop) {
  auto next = env_.clock.Now();
  std::optional<base::Clock::Duration> close_at;
  while (!ended_.load()) {
    if (stop.load()) {
      api_.Drain();  // balancers look elsewhere; those that come all the same are answered
      if (!close_at) close_at = env_.clock.Now() + options_.drain;
      if (env_.clock.Now() >= *close_at) server_->Stop(seconds(5));
    }
    if (env_.clock.Now() >= next) {
      api_.Tick();
      for (ServedModel* const model : api_.models()) model->deployment().Sync();
      next = std::max(next + seconds(1), env_.clock.Now());  // a second missed is not made up for
    }
    env_.clock.Sleep(milliseconds(50));
  }
}

}  // namespace freshet::serve
