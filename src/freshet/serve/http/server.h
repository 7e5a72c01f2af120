#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "serve/http/exchange.h"

namespace freshet::serve {

// What one client may cost. Beyond a limit the client gets the status in the comment and loses the connection.
struct HttpLimits {
  using Duration = base::Clock::Duration;
  std::size_t header_bytes = 8 << 10;                  // request line and fields; 431
  int header_fields = 64;                              // 431
  Duration header_timeout = std::chrono::seconds(10);  // from the first byte (or the connection) to the empty line; 408
  std::size_t body_bytes = 16 << 20;                   // 413
  std::size_t anonymous_body_bytes = 64 << 10;         // for clients without a token, where tokens are needed; 401
  std::size_t bodies_bytes = 512 << 20;                // all bodies beyond 64 kB that are being held, together; 503
  std::size_t body_chunks = 65'536;                    // of a chunked body; 400
  std::size_t rate_bytes_per_s = 1 << 10;              // at least this much of a body or an answer, …
  Duration rate_window = std::chrono::seconds(30);     // … in each stretch of this length; 408
  Duration body_pause = std::chrono::seconds(10);      // between two pieces of a body; 408
  Duration idle_timeout = std::chrono::seconds(60);    // between two requests; closed without a word
  Duration answer_timeout = std::chrono::minutes(5);   // for the handler; 504
  std::size_t stream_backlog_bytes = 256 << 10;        // what a stream's client has not taken yet; closed
  int streams = 200;                                   // answers without an end; beyond them the oldest ends
  int connections = 1'000;        // then the one that has waited longest for its client goes, or the oldest stream, …
  int reserved_connections = 32;  // … or, where neither is, only reserved_paths and admin tokens are answered, or 503
  int connections_per_address = 64;   // 429
  int connections_from_loopback = 0;  // per loopback address; 0: as many as there may be in all
  int token_failures_per_s = 10;      // per address; 429
};

struct HttpOptions {
  std::string address = "127.0.0.1";       // numeric, v4 or v6
  int port = 0;                            // 0: any free one
  std::vector<std::string> allowed_hosts;  // names clients may use beside loopback and our own address; "*": any
  std::string certificate;                 // PEM files; both or none
  std::string key;
  std::string token_file;                     // see tokens.h; none: everybody may do everything
  bool insecure = false;                      // listen beyond loopback without tokens or without TLS
  std::vector<std::string> reserved_paths{};  // what is answered when nothing else is, such as questions for health
  HttpLimits limits;
};

// HTTP/1.1 (and 1.0) over TCP, or TLS 1.2 and 1.3, for one handler. Knows nothing of models: it turns bytes into
// requests that hold together, refuses those that do not, and keeps every client within its limits.
//
// Threads:   Run is called from as many threads as there should be I/O loops; each connection stays with one of them.
//            Stop and port from any thread, Stop also from a handler.
// Ownership: borrows clock, log and metrics; all Runs have returned before it is destroyed. Exchanges and Streams may
//            outlive it and are dead then.
// Blocking:  Run, until Stop and then the grace at most. Nothing else.
// Failure:   Listen: kInvalid for options that make no sense, are not safe, or name a certificate, key or token file
// that
//            cannot be used; kNotFound when there is no such file; kBusy when the address is taken; kIo. Afterwards
//            clients fail, the server does not.
class HttpServer {
 public:
  static Result<std::unique_ptr<HttpServer>> Listen(const HttpOptions& options, base::Clock& clock, base::Log& log,
                                                    base::Metrics& metrics, Handler handler);
  virtual ~HttpServer() = default;

  virtual int port() const = 0;
  virtual void Run() = 0;
  // Accepts no more, closes streams and idle connections, lets requests under way finish, and cuts what is left after
  // `grace`. Returns at once; the Runs return when it is done. A second call can only shorten the grace.
  virtual void Stop(base::Clock::Duration grace) = 0;
};

}  // namespace freshet::serve
