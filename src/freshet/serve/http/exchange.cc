#include "serve/http/exchange.h"

#include <nlohmann/json.hpp>

#include "base/option.h"
#include "serve/http/parser.h"

namespace freshet::serve {

std::string_view Request::Header(std::string_view name) const {
  for (const HeaderField& field : headers)
    if (EqualIgnoringCase(field.name, name)) return field.value;
  return {};
}

Response ErrorResponse(int status, std::string_view text) {
  using Json = nlohmann::json;
  const Json body{{"error", ShowOptions(text, "--")}};  // text may quote what a client sent, whatever bytes those were
  return {.status = status, .body = body.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

std::optional<Response> Refuse(const Request& request, Scope needed) {
  if (request.scope >= needed) return std::nullopt;
  if (request.scope != Scope::kNone)
    return ErrorResponse(403, "the token does not allow this; use one of a larger scope");
  Response response = ErrorResponse(401, "a valid token is needed: Authorization: Bearer <token>");
  response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

void Stream::Close() {
  if (const std::shared_ptr<Sink> sink = std::exchange(sink_, nullptr)) sink->Close();
}

Stream& Stream::operator=(Stream&& other) noexcept {
  if (this != &other) {
    Close();
    sink_ = std::move(other.sink_);
  }
  return *this;
}

Exchange::~Exchange() {
  if (sink_) Send(ErrorResponse(500, "the server did not answer this request"));
}

Exchange& Exchange::operator=(Exchange&& other) noexcept {
  if (this != &other) {
    const Exchange dropped(std::move(*this));
    sink_ = std::move(other.sink_);
  }
  return *this;
}

void Exchange::Send(Response response) {
  CHECK(sink_ != nullptr);  // answered once
  std::exchange(sink_, nullptr)->Send(std::move(response));
}

Stream Exchange::OpenStream(std::string content_type) {
  CHECK(sink_ != nullptr);
  return std::exchange(sink_, nullptr)->OpenStream(std::move(content_type));
}

}  // namespace freshet::serve
