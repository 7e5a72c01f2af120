#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "serve/http/exchange.h"

namespace freshet::serve {

// How an answer ends, and what happens to the connection after it.
struct Framing {
  bool keep_alive = true;
  bool http_1_0 = false;              // the client's version
  std::optional<std::size_t> length;  // of the body; without one it comes in chunks, or until the end of the connection
};

// Appends status line and fields, up to and with the empty line. Control bytes in the handler's fields become blanks,
// so that no value can add a field.
void AppendHead(std::string& out, const Response& response, const Framing& framing, std::string_view date);

// One piece of a chunked body; no piece is empty, since that would end the body.
void AppendChunk(std::string& out, std::string_view piece);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

// As in the Date field: Sun, 06 Nov 1994 08:49:37 GMT.
std::string HttpDate(base::Clock::Duration wall);

// Whether an answer with this status has a body.
bool HasBody(int status);

}  // namespace freshet::serve
