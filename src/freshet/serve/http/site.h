#pragma once

#include <atomic>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "serve/http/body.h"
#include "serve/http/gate.h"
#include "serve/http/host.h"
#include "serve/http/mailbox.h"
#include "serve/http/server.h"
#include "serve/http/tls.h"
#include "serve/http/tokens.h"

namespace freshet::serve {

// What the loops and connections of one server share: its options, its counts, and when it stops.
//
// Threads: any. Ownership: borrows clock, log and metrics; outlives loops, not connections held by exchanges.
struct HttpSite {
  HttpSite(const HttpOptions& site_options, base::Clock& site_clock, base::Log& site_log, base::Metrics& site_metrics,
           Handler site_handler)
      : options(site_options),
        handler(std::move(site_handler)),
        hosts(site_options.allowed_hosts),
        clock(site_clock),
        log(site_log),
        metrics(site_metrics),
        gate(site_options.limits),
        bodies(std::make_shared<BodyBudget>(site_options.limits.bodies_bytes)) {}

  void CountBadInput(std::string_view reason) {
    Count("freshet_bad_input_total", reason, "Requests refused for what they were");
  }
  void CountRejected(std::string_view reason) {
    Count("freshet_rejected_connections_total", reason, "Connections turned away or given up");
  }
  void CountAuthFailure(std::string_view reason) {
    Count("freshet_auth_failures_total", reason, "Requests whose token was wrong or missing or did not suffice");
  }

  const HttpOptions options;
  const Handler handler;
  const HostRules hosts;
  base::Clock& clock;
  base::Log& log;
  base::Metrics& metrics;
  std::unique_ptr<TlsContext> tls;  // none: plain TCP
  std::unique_ptr<Tokens> tokens;   // none: everybody may do everything
  HttpGate gate;
  HttpMailboxes loops;
  std::atomic<int> streams{0};  // that are open
  const std::shared_ptr<BodyBudget> bodies;

  static constexpr auto kNever = std::numeric_limits<base::Clock::Duration::rep>::max();
  std::atomic<base::Clock::Duration::rep> stop_at{kNever};  // by the clock; what is left then is cut

 private:
  void Count(const std::string& name, std::string_view reason, const std::string& help) {
    metrics.counter(name, Str("reason=\"", reason, "\""), help).Add();
  }
};

}  // namespace freshet::serve
