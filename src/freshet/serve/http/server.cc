#include "serve/http/server.h"

#include <atomic>

#include "serve/http/acceptor.h"
#include "serve/http/host.h"
#include "serve/http/loop.h"
#include "serve/http/site.h"

namespace freshet::serve {
namespace {

Result<void> CheckLimits(const HttpLimits& limits) {
  const auto positive = [](auto number) { return number > decltype(number){}; };
  if (limits.header_bytes < 256 || limits.header_bytes > (1 << 20))
    return Error{Code::kInvalid, "header_bytes is not between 256 and 1048576"};
  if (!positive(limits.header_fields) || !positive(limits.connections) || !positive(limits.connections_per_address) ||
      !positive(limits.token_failures_per_s) || !positive(limits.rate_bytes_per_s) || !positive(limits.body_chunks) ||
      !positive(limits.streams) || limits.reserved_connections < 0)
    return Error{Code::kInvalid, "limits of counts and rates are at least 1"};
  if (!positive(limits.header_timeout) || !positive(limits.idle_timeout) || !positive(limits.answer_timeout) ||
      !positive(limits.rate_window) || !positive(limits.body_pause))
    return Error{Code::kInvalid, "limits of time are longer than 0"};
  return {};
}

Result<void> CheckSafety(const HttpOptions& options) {
  if (options.certificate.empty() != options.key.empty())
    return Error{Code::kInvalid, "TLS needs a certificate and its key; only one of them is given"};
  if (!IsNumericAddress(options.address))
    return Error{Code::kInvalid,
                 Str("address ", Quoted(options.address), " is not numeric; give one like 127.0.0.1 or ::1")};
  if (options.insecure || IsLoopbackAddress(options.address)) return {};
  if (options.token_file.empty() || options.certificate.empty())
    return Error{Code::kInvalid, Str("address ", options.address,
                                     " can be reached by others: give a token file and a certificate with its key, "
                                     "or listen on 127.0.0.1, or say that it may be insecure")};
  return {};
}

class Server final : public HttpServer {
 public:
  Server(const HttpOptions& options, base::Clock& clock, base::Log& log, base::Metrics& metrics, Handler handler)
      : site_(options, clock, log, metrics, std::move(handler)) {}
  ~Server() override { CHECK(running_ == 0); }

  Result<void> Open() {
    const HttpOptions& options = site_.options;
    if (!options.certificate.empty()) site_.tls = TRY(TlsContext::Load(options.certificate, options.key));
    if (!options.token_file.empty())
      site_.tokens = TRY(
          Tokens::Open(options.token_file, options.limits.token_failures_per_s, site_.clock, site_.log, site_.metrics));
    acceptor_ = TRY(HttpAcceptor::Open(options.address, options.port));
    site_.log.Info("listening", "address", options.address, "port", port(), "tls", site_.tls != nullptr, "tokens",
                   site_.tokens != nullptr);
    return {};
  }

  int port() const override { return acceptor_->port(); }

  void Run() override {
    ++running_;
    {
      const auto loop = HttpLoop::Make(site_, acceptor_.get());
      if (loop.ok()) {
        loop.value()->Run();
      } else {
        site_.log.Error("io_loop_failed", "why", loop.error().text);
      }
    }
    --running_;
  }

  void Stop(base::Clock::Duration grace) override {
    const auto at = (site_.clock.Now() + grace).count();
    auto known = site_.stop_at.load();
    while (at < known && !site_.stop_at.compare_exchange_weak(known, at)) {
    }
    acceptor_->ShutDown();
    site_.loops.WakeAll();
  }

 private:
  HttpSite site_;
  std::unique_ptr<HttpAcceptor> acceptor_;
  std::atomic<int> running_{0};
};

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::Listen(const HttpOptions& options, base::Clock& clock, base::Log& log,
                                                       base::Metrics& metrics, Handler handler) {
  TRY(CheckLimits(options.limits));
  TRY(CheckSafety(options));
  auto server = std::make_unique<Server>(options, clock, log, metrics, std::move(handler));
  TRY(server->Open());
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace freshet::serve
