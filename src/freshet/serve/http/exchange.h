#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"

namespace freshet::serve {

// What a bearer token allows. Each scope includes those before it.
enum class Scope { kNone, kPredict, kLearn, kAdmin };

struct HeaderField {
  std::string_view name;
  std::string_view value;
};

// One request as it arrived, checked: a known method, lengths that agree, a Host we answer to, an Origin that is ours.
// The views live as long as the Exchange that holds them has not been answered.
struct Request {
  std::string_view method;  // GET, HEAD, POST, PUT, PATCH or DELETE
  std::string_view path;    // percent-decoded once; never holds NUL, control bytes, "..", "\" or an escaped "/" or "%"
  std::string_view query;   // what followed the ?, as it was sent
  std::string_view content_type;
  std::string_view body;
  std::string_view peer;                 // the client's address, without the port
  std::span<const HeaderField> headers;  // in the order they came
  Scope scope = Scope::kNone;            // what the token allows; kAdmin for everybody when there is no token file
  std::string_view token_name;           // what the token is called; "" without a valid one

  // The first field of that name, whatever its case; "" when there is none.
  std::string_view Header(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body{};
  std::vector<std::pair<std::string, std::string>> headers{};
};

// {"error": text} with this status; options that the text names are flags to whoever runs a server.
Response ErrorResponse(int status, std::string_view text);

// The answer to a request whose token does not allow `needed`: 401 without a valid token, 403 with too small a one.
// Nothing when it does.
std::optional<Response> Refuse(const Request& request, Scope needed);

// The sending end of an answer without an end, such as server-sent events. Dropping it closes it.
//
// Threads:  any, one at a time.
// Blocking: never; what the client has not taken waits in a bounded backlog.
class Stream {
 public:
  // Where the pieces go: a connection, or what a test puts there.
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual bool Write(std::string_view text) = 0;
    virtual void Close() = 0;
  };

  explicit Stream(std::shared_ptr<Sink> sink) : sink_(std::move(sink)) {}
  Stream(Stream&&) noexcept = default;
  Stream& operator=(Stream&& other) noexcept;
  ~Stream() { Close(); }

  // False when the client is gone, too slow (the backlog is full) or the server is stopping: give up then.
  bool Write(std::string_view text) { return sink_ && sink_->Write(text); }
  void Close();

 private:
  std::shared_ptr<Sink> sink_;
};

// One request waiting for its answer. Answer it once, by Send or OpenStream; dropped unanswered, the client gets 500.
//
// Threads:   any thread may hold and answer it, one at a time.
// Ownership: keeps the request's memory alive. After the answer request() is not to be called.
// Blocking:  never. Answering a client that is gone does nothing.
class Exchange {
 public:
  // Who takes the answer: a connection, or what a test puts there.
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual const Request& request() const = 0;
    virtual void Send(Response response) = 0;
    virtual Stream OpenStream(std::string content_type) = 0;
  };

  explicit Exchange(std::shared_ptr<Sink> sink) : sink_(std::move(sink)) {}
  Exchange(Exchange&&) noexcept = default;
  Exchange& operator=(Exchange&& other) noexcept;
  ~Exchange();

  const Request& request() const { return CHECK(sink_ != nullptr), sink_->request(); }
  void Send(Response response);
  Stream OpenStream(std::string content_type);

 private:
  std::shared_ptr<Sink> sink_;  // none once answered
};

// Runs on an I/O thread, several at once when there are several; must not block and must not throw.
using Handler = std::function<void(Exchange)>;

}  // namespace freshet::serve
