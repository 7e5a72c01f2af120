#include "serve/api.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "serve/api_parts.h"
#include "serve/http/parser.h"
#include "serve/process_metrics.h"
#include "serve/status_page.h"

namespace freshet::serve {
namespace {

std::vector<double> DurationBounds() {
  return {0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 3, 10};
}
constexpr std::string_view kRequestsHelp = "Requests answered, by what was called.";
constexpr std::string_view kDurationHelp = "Time to answer a request, without the network.";

// A label value that clients choose must not grow the registry: only known methods pass.
std::string Labels(std::string_view route, std::string_view method, int status) {
  return Str("route=\"", route, "\",method=\"", method, "\",code=\"", status, "\"");
}

// Whether the body is of a type that pages of other origins cannot send without asking us first. The length of the JSON
// before binary tensors is a field they cannot send either, and clients that give it often name no type.
bool HasOurType(const Request& request) {
  const std::string_view type = Trim(request.content_type.substr(0, request.content_type.find(';')));
  if (request.content_type.empty()) return !request.Header("Inference-Header-Content-Length").empty();
  return EqualIgnoringCase(type, "application/json") || EqualIgnoringCase(type, "application/octet-stream");
}

}  // namespace

Response ErrorOf(const Error& error) {
  switch (error.code) {
    case Code::kBadInput:
    case Code::kInvalid:
      return ErrorResponse(400, error.text);
    case Code::kNotFound:
      return ErrorResponse(404, error.text);
    case Code::kBusy: {
      Response response = ErrorResponse(429, error.text);
      response.headers.emplace_back("Retry-After", "1");
      return response;
    }
    case Code::kIo:
      // The reason names files of this machine: it is in the log.
      return ErrorResponse(503, "the disk does not take observations at the moment; nothing was kept, send them again");
    case Code::kStopped:
      return ErrorResponse(503, "the server is stopping");
    default:
      return ErrorResponse(500, "the model cannot answer; its operator finds the reason in the log");
  }
}

Api::Api(ApiOptions options, base::Files& files, base::Clock& clock, base::Metrics& metrics, base::Jobs& slow)
    : options_(std::move(options)),
      files_(files),
      clock_(clock),
      metrics_(metrics),
      slow_(slow),
      infer_ok_(
          metrics.counter("freshet_http_requests_total", Labels("infer", "POST", 200), std::string(kRequestsHelp))),
      infer_duration_(metrics.histogram("freshet_http_request_duration_seconds", "route=\"infer\"",
                                        std::string(kDurationHelp), DurationBounds())) {
  for (int slot = 0; slot < options_.threads + 1; ++slot) {
    scratch_.push_back(std::make_unique<Scratch>(slot));
    free_.push_back(scratch_.back().get());
  }
  metrics
      .gauge("freshet_build_info", Str("version=\"", options_.version, "\",commit=\"", options_.commit, "\""),
             "The program that runs.")
      .Set(1);
  StartProcessMetrics(metrics_, base::Seconds(clock_.Wall()));
}

Api::~Api() = default;

deploy::Publisher::Companion Api::CompanionOf(bool open) {
  return [open](const deploy::Edition& edition) -> std::shared_ptr<const void> {
    return std::make_shared<Signature>(edition.description, *edition.model, open);
  };
}

void Api::Add(std::unique_ptr<ServedModel> model) {
  const std::string name = model->name();
  CHECK(models_.emplace(name, std::move(model)).second);
}

std::vector<ServedModel*> Api::models() {
  std::vector<ServedModel*> all;
  for (auto& [name, model] : models_) all.push_back(model.get());
  return all;
}

std::vector<std::string> Api::ReservedPaths() const {
  std::vector<std::string> paths = {"/v2/health/live", "/v2/health/ready", "/metrics"};
  for (const auto& [name, model] : models_) paths.push_back(Str("/v2/models/", name, "/ready"));
  return paths;
}

Api::Borrowed::Borrowed(Api& api) : api_(api) {
  const base::Lock lock(api.scratch_mutex_);
  CHECK(!api.free_.empty());
  scratch_ = api.free_.back();
  api.free_.pop_back();
}

Api::Borrowed::~Borrowed() {
  const base::Lock lock(api_.scratch_mutex_);
  api_.free_.push_back(scratch_);
}

void Api::Count(std::string_view route, std::string_view method, int status) {
  metrics_.counter("freshet_http_requests_total", Labels(route, method, status), std::string(kRequestsHelp)).Add();
}

// /v2/models/NAME[/versions/VERSION][/CALL]
bool Api::Route::Parse(std::string_view path) {
  constexpr std::string_view kPrefix = "/v2/models/";
  if (!path.starts_with(kPrefix)) return false;
  path.remove_prefix(kPrefix.size());
  const auto take = [&] {
    const auto slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
    return part;
  };
  name = take();
  call = take();
  if (call == "versions" && !path.empty()) {
    version = take();
    call = take();
  }
  return !name.empty() && path.empty();
}

void Api::Handle(Exchange exchange) {
  const Request& request = exchange.request();
  Route route;
  if (request.path == "/" || request.path == "/metrics" || !route.Parse(request.path))
    return ServerCall(exchange, request.path);
  Dispatch(exchange, route);
}

void Api::Dispatch(Exchange& exchange, Route& route) {
  const Request& request = exchange.request();
  const auto refuse = [&](Response response) {
    Count("model", request.method, response.status);
    exchange.Send(std::move(response));
  };
  const bool ready = route.call == "ready";
  const bool get = request.method == "GET" || request.method == "HEAD";
  const bool reading = route.call.empty() || route.call == "stats" || route.call == "versions" ||
                       route.call == "events" || route.call == "history" || ready;
  const bool predicting = route.call == "infer" || route.call == "recommend";
  const bool learning = route.call == "learn" || route.call == "feedback";
  const bool control = route.call == "datasets" || route.call == "rollback" || route.call == "iterate" ||
                       route.call == "pin" || route.call == "deploy";
  if (!reading && !predicting && !learning && !control)
    return refuse(ErrorResponse(404, Str("there is no call ", Quoted(route.call), "; GET /v2 lists the extensions")));
  if (!route.version.empty() && !route.call.empty() && route.call != "infer" && !ready)
    return refuse(ErrorResponse(404, Str("a version has no call ", Quoted(route.call), "; its model may have")));
  if (!ready) {
    const Scope needed = control ? Scope::kAdmin : (learning ? Scope::kLearn : Scope::kPredict);
    if (auto refused = Refuse(request, needed)) return refuse(std::move(*refused));
  }
  if (reading != get) {
    Response response = ErrorResponse(
        405, Str(route.call.empty() ? "metadata" : route.call, " is asked for by ", reading ? "GET" : "POST"));
    response.headers.emplace_back("Allow", reading ? "GET, HEAD" : "POST");
    return refuse(std::move(response));
  }
  const auto found = models_.find(route.name);
  if (found == models_.end())
    return refuse(ErrorResponse(404, Str("there is no model ", Quoted(route.name), "; GET /v2/models lists them")));
  ServedModel& model = *found->second;
  if (!reading && !HasOurType(request)) {
    const std::string type = request.content_type.empty() ? "there is no Content-Type"
                                                          : Str("Content-Type is ", Quoted(request.content_type));
    return refuse(ErrorResponse(415, Str(type,
                                         "; add the header Content-Type: application/json (curl -H 'Content-Type: "
                                         "application/json'), or application/octet-stream for binary tensors")));
  }
  std::uint64_t version = 0;
  bool kept = false;
  if (!route.version.empty()) {
    const auto end = route.version.data() + route.version.size();
    const auto parsed = std::from_chars(route.version.data(), end, version);
    const bool number = parsed.ec == std::errc() && parsed.ptr == end;
    kept = number && model.deployment().versions() != nullptr && model.deployment().versions()->Find(version);
    if (!kept && !(number && version == model.deployment().stats().version))
      return refuse(ErrorResponse(404, Str("model ", Quoted(route.name), " has no version ", Quoted(route.version),
                                           "; GET …/versions lists those that are kept")));
  }
  if (route.call == "infer") {
    if (kept) return InferOld(exchange, model, version);  // also when the current one has that number by now
    return Infer(exchange, model);
  }
  if (route.call == "learn") return Learn(exchange, model);
  if (route.call == "feedback") return Feedback(exchange, model);
  if (route.call == "recommend") return Recommend(exchange, model);
  if (control) return Control(exchange, model, route.call);
  if (route.call == "events") return Events(exchange, model);
  Response response;
  if (route.call.empty()) return Metadata(exchange, model, std::string(route.version));
  if (route.call == "stats") response.body = model.StatsJson();
  if (route.call == "history") response.body = model.HistoryJson();
  if (route.call == "versions") response.body = model.VersionsJson();
  if (ready) {
    const bool is = !draining_.load(std::memory_order_relaxed);
    response.status = is ? 200 : 503;
    response.body = Str("{\"name\":\"", model.name(), "\",\"ready\":", is, "}");
  }
  Count(route.call, "GET", response.status);
  exchange.Send(std::move(response));
}

void Api::Metadata(Exchange& exchange, ServedModel& model, const std::string& version) {
  Borrowed scratch(*this);
  Response response;
  response.body = "{\"name\":";
  AppendJsonString(model.name(), response.body);
  response.body += Str(",\"platform\":\"freshet_", model.deployment().model().config().kind, "\",\"versions\":[");
  if (!version.empty()) {
    AppendJsonString(version, response.body);
  } else {
    const std::uint64_t current = model.deployment().stats().version;
    AppendJsonString(Str(current), response.body);
    if (model.deployment().versions() != nullptr)
      for (const auto& info : model.deployment().versions()->list())
        if (info.id != current) response.body += Str(",\"", info.id, "\"");
  }
  response.body += "],";
  {
    const auto edition = model.deployment().Read(scratch->slot);
    static_cast<const Signature*>(edition->companion.get())->AppendMetadata(response.body);
  }
  response.body += Str(",\"properties\":{\"method\":\"", deploy::Name(model.deployment().options().method),
                       "\",\"loss\":\"", model.deployment().model().config().loss, "\"}}");
  Count("metadata", "GET", 200);
  exchange.Send(std::move(response));
}

void Api::ServerCall(Exchange& exchange, std::string_view path) {
  const Request& request = exchange.request();
  Response response;
  std::string route = "server";
  const bool health = path == "/v2/health/live" || path == "/v2/health/ready";
  if (request.method != "GET" && request.method != "HEAD") {
    response = path == "/" || path == "/metrics" || health || path == "/v2" || path == "/v2/" || path == "/v2/models"
                   ? ErrorResponse(405, "this is asked for by GET")
                   : ErrorResponse(404, Str("there is nothing at ", Quoted(path)));
  } else if (path == "/v2/health/live") {
    response.body = "{\"live\":true}";
  } else if (path == "/v2/health/ready") {
    const bool ready = !draining_.load(std::memory_order_relaxed);
    response.status = ready ? 200 : 503;
    response.body = Str("{\"live\":true,\"ready\":", ready, "}");
  } else if (path == "/") {
    response.content_type = "text/html; charset=utf-8";
    response.body = StatusPage();
    response.headers.emplace_back("Content-Security-Policy",
                                  "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
                                  "img-src data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'");
    response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  } else if (auto refused = Refuse(request, Scope::kPredict)) {
    response = std::move(*refused);
  } else if (path == "/metrics") {
    route = "metrics";
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    response.body = MetricsText();
  } else if (path == "/v2" || path == "/v2/") {
    response.body = Str("{\"name\":\"freshet\",\"version\":\"", options_.version,
                        "\",\"extensions\":[\"binary_tensor_data\",\"statistics\",\"online_learning\"]}");
  } else if (path == "/v2/models") {
    response.body = "{\"models\":[";
    for (const auto& [name, model] : models_) {
      if (response.body.back() != '[') response.body += ',';
      response.body += model->StatsJson();
    }
    response.body += "]}";
  } else {
    response = ErrorResponse(404, Str("there is nothing at ", Quoted(path)));
  }
  Count(route, request.method, response.status);
  exchange.Send(std::move(response));
}

std::string Api::MetricsText() {
  RefreshProcessMetrics(metrics_);
  return metrics_.Text();
}

void Api::Events(Exchange& exchange, ServedModel& model) {
  Count("events", "GET", 200);
  Stream stream = exchange.OpenStream("text/event-stream");
  if (!stream.Write(Str("event: history\ndata: ", model.HistoryJson(), "\n\n"))) return;
  const base::Lock lock(streams_mutex_);
  streams_.emplace_back(model.name(), std::move(stream));
}

void Api::Tick() {
  for (ServedModel* const model : models()) {
    const Moment moment = model->Tick();
    const std::string event = Str("id: ", static_cast<std::int64_t>(moment.time), "\ndata: ", moment.ToJson(), "\n\n");
    const base::Lock lock(streams_mutex_);
    std::erase_if(streams_, [&](auto& stream) { return stream.first == model->name() && !stream.second.Write(event); });
  }
}

}  // namespace freshet::serve
