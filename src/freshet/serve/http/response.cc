#include "serve/http/response.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

#include "base/check.h"
#include "base/str.h"

namespace freshet::serve {
namespace {

constexpr std::pair<int, std::string_view> kPhrases[] = {{200, "OK"},
                                                         {201, "Created"},
                                                         {202, "Accepted"},
                                                         {204, "No Content"},
                                                         {301, "Moved Permanently"},
                                                         {302, "Found"},
                                                         {304, "Not Modified"},
                                                         {307, "Temporary Redirect"},
                                                         {400, "Bad Request"},
                                                         {401, "Unauthorized"},
                                                         {403, "Forbidden"},
                                                         {404, "Not Found"},
                                                         {405, "Method Not Allowed"},
                                                         {406, "Not Acceptable"},
                                                         {408, "Request Timeout"},
                                                         {409, "Conflict"},
                                                         {410, "Gone"},
                                                         {411, "Length Required"},
                                                         {412, "Precondition Failed"},
                                                         {413, "Content Too Large"},
                                                         {414, "URI Too Long"},
                                                         {415, "Unsupported Media Type"},
                                                         {417, "Expectation Failed"},
                                                         {421, "Misdirected Request"},
                                                         {422, "Unprocessable Content"},
                                                         {429, "Too Many Requests"},
                                                         {431, "Request Header Fields Too Large"},
                                                         {500, "Internal Server Error"},
                                                         {501, "Not Implemented"},
                                                         {503, "Service Unavailable"},
                                                         {504, "Gateway Timeout"},
                                                         {505, "HTTP Version Not Supported"},
                                                         {507, "Insufficient Storage"}};

std::string_view Phrase(int status) {
  const auto* found =
      std::find_if(std::begin(kPhrases), std::end(kPhrases), [&](const auto& one) { return one.first == status; });
  return found != std::end(kPhrases) ? found->second : "Answer";
}

void AppendNumber(std::string& out, std::size_t number, int base = 10) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number, base).ptr);
}

void AppendClean(std::string& out, std::string_view text) {
  for (const char c : text) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
}

}  // namespace

void AppendHead(std::string& out, const Response& response, const Framing& framing, std::string_view date) {
  CHECK(response.status >= 200 && response.status <= 999);
  if (response.status == 200) {
    out += "HTTP/1.1 200 OK\r\nDate: ";
  } else {
    out += "HTTP/1.1 ";
    AppendNumber(out, static_cast<std::size_t>(response.status));
    out += ' ';
    out += Phrase(response.status);
    out += "\r\nDate: ";
  }
  out += date;
  if (HasBody(response.status)) {
    out += "\r\nContent-Type: ";
    AppendClean(out, response.content_type);
    if (framing.length) {
      out += "\r\nContent-Length: ";
      AppendNumber(out, *framing.length);
    } else if (!framing.http_1_0) {
      out += "\r\nTransfer-Encoding: chunked";
    }
  }
  out += "\r\nX-Content-Type-Options: nosniff";
  for (const auto& [name, value] : response.headers) {
    out += "\r\n";
    AppendClean(out, name);
    out += ": ";
    AppendClean(out, value);
  }
  if (!framing.keep_alive) {
    out += "\r\nConnection: close";
  } else if (framing.http_1_0) {
    out += "\r\nConnection: keep-alive";
  }
  out += "\r\n\r\n";
}

void AppendChunk(std::string& out, std::string_view piece) {
  CHECK(!piece.empty());
  AppendNumber(out, piece.size(), 16);
  out += "\r\n";
  out += piece;
  out += "\r\n";
}

std::string HttpDate(base::Clock::Duration wall) {
  static constexpr std::array<std::string_view, 7> kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t seconds = std::chrono::duration_cast<std::chrono::seconds>(wall).count();
  std::tm utc{};
  CHECK(::gmtime_r(&seconds, &utc) != nullptr);
  const auto two = [](int number) { return Str(number < 10 ? "0" : "", number); };
  return Str(kDays[static_cast<std::size_t>(utc.tm_wday)], ", ", two(utc.tm_mday), " ",
             kMonths[static_cast<std::size_t>(utc.tm_mon)], " ", utc.tm_year + 1900, " ", two(utc.tm_hour), ":",
             two(utc.tm_min), ":", two(utc.tm_sec), " GMT");
}

bool HasBody(int status) { return status != 204 && status != 304; }

}  // namespace freshet::serve
