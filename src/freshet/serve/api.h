#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/jobs.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "serve/http/exchange.h"
#include "serve/infer_response.h"
#include "serve/learn_request.h"
#include "serve/served_model.h"

namespace freshet::serve {

struct ApiOptions {
  std::string version = "0";  // of the program
  std::string commit;
  int threads = 2;                         // that answer requests at once; a deployment needs two readers more
  std::vector<std::string> dataset_roots;  // directories that data sets may be registered from; none: not over HTTP
  std::size_t versions_in_memory = 4;      // older versions kept loaded for predictions
};

// The calls of the server: the Open Inference Protocol v2, the learning extension, metrics and the status page.
// docs/api.md lists them. Knows requests and models, not sockets.
//
// Threads:   Handle from any number of threads, up to options.threads at once (more wait a moment for one another); it
//            never blocks on training or the disk. Tick from one thread, once a second.
// Ownership: owns the models; borrows the rest. `slow` runs what would block (loading an older version).
class Api {
 public:
  Api(ApiOptions options, base::Files& files, base::Clock& clock, base::Metrics& metrics, base::Jobs& slow);
  ~Api();

  // What deployments of models to be added need: a signature beside each edition, and readers enough.
  static deploy::Publisher::Companion CompanionOf(bool open);
  // What a full server still answers: whether it is well.
  std::vector<std::string> ReservedPaths() const;
  int readers() const { return options_.threads + 2; }
  void Add(std::unique_ptr<ServedModel> model);
  std::vector<ServedModel*> models();

  void Handle(Exchange exchange);
  void Tick();
  // From here on it is not ready: load balancers look elsewhere.
  void Drain() { draining_.store(true, std::memory_order_relaxed); }

 private:
  struct Scratch;
  struct OldVersion;
  struct Route;
  class Borrowed;

  void Dispatch(Exchange& exchange, Route& route);
  void Infer(Exchange& exchange, ServedModel& model);
  void InferOld(Exchange& exchange, ServedModel& model, std::uint64_t version);
  void AnswerOld(Exchange& exchange, ServedModel& model, const OldVersion& old);
  void Learn(Exchange& exchange, ServedModel& model);
  void Feedback(Exchange& exchange, ServedModel& model);
  void Recommend(Exchange& exchange, ServedModel& model);
  void Control(Exchange& exchange, ServedModel& model, std::string_view call);
  void Events(Exchange& exchange, ServedModel& model);
  void Metadata(Exchange& exchange, ServedModel& model, const std::string& version);
  void ServerCall(Exchange& exchange, std::string_view path);
  std::string MetricsText();
  Result<std::vector<std::string>> DatasetFiles(const std::string& path) const;
  void Count(std::string_view route, std::string_view method, int status);

  const ApiOptions options_;
  base::Files& files_;
  base::Clock& clock_;
  base::Metrics& metrics_;
  base::Jobs& slow_;
  std::map<std::string, std::unique_ptr<ServedModel>, std::less<>> models_;
  base::Counter& infer_ok_;
  base::Histogram& infer_duration_;
  std::atomic<bool> draining_{false};

  base::Mutex scratch_mutex_;
  std::vector<std::unique_ptr<Scratch>> scratch_ GUARDED_BY(scratch_mutex_);
  std::vector<Scratch*> free_ GUARDED_BY(scratch_mutex_);

  base::Mutex streams_mutex_;
  std::vector<std::pair<std::string, Stream>> streams_ GUARDED_BY(streams_mutex_);  // by model

  optimize::HeapMemory memory_;  // of older versions
  base::Mutex old_mutex_;
  std::vector<std::shared_ptr<const OldVersion>> old_ GUARDED_BY(old_mutex_);  // most recently used last
};

}  // namespace freshet::serve
