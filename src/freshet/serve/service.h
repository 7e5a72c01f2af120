#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/metrics.h"
#include "deploy/deployment.h"
#include "deploy/runtime.h"
#include "model/model_file.h"
#include "serve/api.h"
#include "serve/http/server.h"
#include "train/learning.h"

namespace freshet::serve {

// A model to be served: what it is called, and how it is kept up to date (see OptionsFor).
struct Offer {
  std::string name;  // up to 64 letters, digits, _ . - +
  model::TrainedModel trained;
  deploy::DeploymentOptions options;
  std::vector<std::string> history = {};  // files of rows it was trained on, which iterations of a new state draw from
};

// How a served model is kept up to date where nobody says otherwise: by the recipe for its kind, and by the update rule
// that its state in `directory` has kept, or else the one that suits the model. `learning` and `recipe` say what is
// said of these; `options` what neither is about.
Result<deploy::DeploymentOptions> OptionsFor(base::Files& files, std::string directory,
                                             const model::TrainedModel& trained,
                                             train::Learning learning = {.use = train::Learning::Use::kReplay},
                                             const std::string& recipe = "auto",
                                             deploy::DeploymentOptions options = {});

struct ServiceOptions {
  HttpOptions http;                   // port 0 is any free one
  int threads = 0;                    // that answer; 0: one a core
  std::vector<std::string> datasets;  // directories that data sets may be registered from
  base::Clock::Duration drain{0};     // from the wish to stop, when it says it is not ready, until it closes
  std::string commit;                 // of the program, for who asks
};

// A server with its models: what has to be put together for them to be predicted by and to go on learning.
//
//   auto options = TRY(serve::OptionsFor(env.files, "state/sea", trained));
//   std::vector<serve::Offer> models;
//   models.push_back({"sea", std::move(trained), std::move(options)});
//   auto service = TRY(serve::Service::Open(env, memory, {}, std::move(models)));
//   TRY(service->Run(stop));
//
// Threads:   Run has those it needs (the ones that answer, one that writes and learns, one that trains, one for what
//            would block, one that looks at the clock), and returns when all have ended.
// Ownership: borrows env and memory, owns the rest.
// Failure:   Open: as deploy::Deployment::Open and HttpServer::Listen; kInvalid for names that cannot be. Run: when a
//            deployment cannot be closed.
class Service {
 public:
  // Opens the deployments and listens: who connects waits until Run. kStopped after *stop.
  static Result<std::unique_ptr<Service>> Open(const base::Env& env, optimize::Memory& memory, ServiceOptions options,
                                               std::vector<Offer> models, const std::atomic<bool>* stop = nullptr);

  int port() const { return server_->port(); }
  const std::string& address() const { return address_; }  // http://127.0.0.1:8080/
  std::vector<ServedModel*> models() { return api_.models(); }

  // Answers until `stop` is set, ends what is under way and closes the deployments. Once.
  Result<void> Run(const std::atomic<bool>& stop);

 private:
  Service(const base::Env& env, ServiceOptions options, std::vector<std::string> dataset_roots);
  Result<void> Add(optimize::Memory& memory, Offer offer, const std::atomic<bool>* stop);
  Result<void> Listen();
  void Write();
  void Train();
  void WatchTheClock(const std::atomic<bool>& stop);
  void EndAll();

  const base::Env env_;
  const ServiceOptions options_;
  base::Metrics metrics_;
  base::Bell writer_, trainer_, slow_bell_;
  base::Jobs slow_;
  deploy::LocalRuntime runtime_;
  Api api_;
  std::unique_ptr<HttpServer> server_;
  std::string address_;
  std::atomic<bool> ended_{false};
};

}  // namespace freshet::serve
