#pragma once

#include <sys/stat.h>

#include <atomic>
#include <deque>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/scratch_testing.h"
#include "serve/api.h"
#include "serve/http/testing.h"
#include "serve/models_testing.h"

namespace freshet::serve {

using Json = nlohmann::json;

// The system's clock, whose hands for the time of day can be turned.
class ShiftedClock final : public base::Clock {
 public:
  Duration Now() const override { return system_.Now(); }
  Duration Wall() const override { return system_.Wall() + Duration(shift_.load()); }
  void Sleep(Duration duration) override { system_.Sleep(duration); }
  void Shift(Duration by) { shift_ += by.count(); }

 private:
  base::SystemClock system_;
  std::atomic<Duration::rep> shift_{0};
};

struct Reply {
  int status = 0;  // 0: the connection was closed without an answer
  Json json;       // of an answer that is JSON
  std::string body, head;
};

// A polite client of the API on a connection of its own.
class ApiClient {
 public:
  explicit ApiClient(int port, std::string token = "") : client_(port) {
    if (!token.empty()) authorization_ = Str("Authorization: Bearer ", token, "\r\n");
  }
  Reply Get(std::string_view path) { return Ask(serve::Get(path, authorization_)); }
  Reply Post(std::string_view path, const std::string& body, std::string_view more = "") {
    return Ask(serve::Post(path, body, Str(authorization_, "Content-Type: application/json\r\n", more)));
  }
  Reply Post(std::string_view path, const Json& body) { return Post(path, body.dump()); }
  Reply Ask(std::string_view request) {
    if (!client_.Send(request)) return {};
    return Read(client_.Receive());
  }
  static Reply Read(TestClient::Answer answer) {
    Reply reply{answer.status, {}, std::move(answer.body), std::move(answer.head)};
    if (reply.body.starts_with('{') || reply.body.starts_with('[')) {
      const std::size_t at = reply.head.find("Inference-Header-Content-Length: ");
      const std::size_t bytes = at == std::string::npos ? reply.body.size() : std::stoull(reply.head.substr(at + 33));
      reply.json = Json::parse(reply.body.substr(0, bytes), nullptr, false);
    }
    return reply;
  }
  TestClient& connection() { return client_; }

 private:
  TestClient client_;
  std::string authorization_;
};

// Bodies of requests.
inline Json Tensor(const std::string& name, const std::string& type, const Json& data) {
  return {{"name", name}, {"shape", {data.size()}}, {"datatype", type}, {"data", data}};
}
inline Json Matrix(const std::vector<std::vector<double>>& rows) {
  Json flat = Json::array();
  for (const auto& row : rows)
    for (const double value : row) flat.push_back(value);
  return {{"name", "x"}, {"shape", {rows.size(), rows[0].size()}}, {"datatype", "FP32"}, {"data", flat}};
}
inline Json Inputs(std::vector<Json> tensors) { return {{"inputs", std::move(tensors)}}; }

using Change = std::function<void(deploy::DeploymentOptions&)>;

// A server with models in a directory of its own, and all the threads that `freshet serve` has.
class ApiServer {
 public:
  explicit ApiServer(std::vector<std::string> dataset_roots = {})
      : api_(OptionsWith(std::move(dataset_roots)), files, clock, metrics, slow_) {}
  ~ApiServer() { Stop(); }

  // Before Start.
  deploy::Deployment& Add(const std::string& name, data::Description description, const model::ModelConfig& config,
                          const Change& change = nullptr) {
    deploy::DeploymentOptions options;
    options.directory = scratch / name;
    options.method = deploy::Method::kBaselinePlus;
    const bool factorization = config.kind == "factorization";
    options.optimizer.kind = factorization ? "sgd" : "adagrad";
    options.optimizer.schedule.rate = factorization ? 0.02 : 0.15;
    options.schedule.max_buffer_size = 0;
    if (change) change(options);
    const bool open = options.new_classes > 0;
    auto model = model::Model::Make(config).value();
    auto parameters = model->NewParameters(memory_).value();
    deploy::Deployment::Doors doors{api_.readers(), Api::CompanionOf(open), &writer_, &trainer_};
    auto deployment = deploy::Deployment::Open(env_, std::move(options), runtime_, memory_,
                                               {std::move(model), std::move(parameters), std::move(description), {}},
                                               std::move(doors));
    if (!deployment.ok()) CheckFailed(__FILE__, __LINE__, deployment.error().text.c_str());
    deploy::Deployment& added = *deployment.value();
    api_.Add(std::make_unique<ServedModel>(name, std::move(deployment).value(), clock, metrics));
    return added;
  }

  void Start(const HttpOptions& http = {}) {
    server_.emplace([this](Exchange exchange) { api_.Handle(std::move(exchange)); }, http, kThreads);
    threads_.emplace_back([this] {
      while (Turn() || !stop_)
        if (!Turn()) writer_.Wait(std::chrono::milliseconds(5));
    });
    threads_.emplace_back([this] {
      while (!stop_)
        if (!Train()) trainer_.Wait(std::chrono::milliseconds(5));
    });
    threads_.emplace_back([this] {
      while (!stop_)
        if (!slow_.RunOne()) slow_bell_.Wait(std::chrono::milliseconds(5));
    });
  }
  void Stop() {
    if (!server_) return;
    server_->Stop(std::chrono::seconds(0));
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    server_.reset();
  }

  Api& api() { return api_; }
  int port() const { return server_->port(); }

  base::ScratchDirectory scratch;
  base::PosixFiles files;
  ShiftedClock clock;
  base::Metrics metrics;

 private:
  static constexpr int kThreads = 2;
  static ApiOptions OptionsWith(std::vector<std::string> dataset_roots) {
    ApiOptions options;
    options.threads = kThreads;
    options.dataset_roots = std::move(dataset_roots);
    return options;
  }
  bool Turn() {
    bool busy = false;
    for (ServedModel* const model : api_.models()) busy = model->deployment().Turn() || busy;
    return busy;
  }
  bool Train() {
    bool busy = false;
    for (ServedModel* const model : api_.models()) busy = model->deployment().background().RunOne() || busy;
    return busy;
  }

  base::Log log_{clock, [](std::string_view) {}};
  base::Faults faults_;
  base::InlineExecutor executor_;
  const base::Env env_{files, clock, log_, executor_, faults_};
  optimize::HeapMemory memory_;
  deploy::LocalRuntime runtime_;
  const base::SystemClock bells_by_;  // whatever the clock of the test shows
  base::Bell writer_{bells_by_}, trainer_{bells_by_}, slow_bell_{bells_by_};
  base::Jobs slow_{slow_bell_};
  Api api_;
  std::atomic<bool> stop_{false};
  std::optional<TestServer> server_;
  std::vector<std::thread> threads_;
};

}  // namespace freshet::serve
