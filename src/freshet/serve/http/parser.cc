#include "serve/http/parser.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace freshet::serve {
namespace {

constexpr auto kTokenBytes = [] {
  std::array<bool, 256> table{};
  for (int c = '0'; c <= '9'; ++c) table[c] = true;
  for (int c = 'A'; c <= 'Z'; ++c) table[c] = table[c + 32] = true;
  for (const char c : std::string_view("!#$%&'*+-.^_`|~")) table[static_cast<unsigned char>(c)] = true;
  return table;
}();

bool IsTokenByte(char c) { return kTokenBytes[static_cast<unsigned char>(c)]; }
bool IsToken(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenByte); }
bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

std::string_view TrimBlanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool IsAnyOf(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  c = Lower(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool EqualIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return Lower(x) == Lower(y); });
}

void HeadParser::Reset() {
  head_ = {};
  fields_.clear();
  size_ = scanned_ = 0;
  has_request_line_ = has_length_ = has_encoding_ = has_host_ = false;
}

bool HeadParser::Bad(int status, std::string_view reason, std::string_view text) {
  mistake_ = {status, reason, text};
  return false;
}

Parsed HeadParser::Parse(std::string_view bytes) {
  const auto bad = [this](int status, std::string_view reason, std::string_view text) {
    return Bad(status, reason, text), Parsed::kBad;
  };
  if (!bytes.empty() && !IsTokenByte(bytes[0])) return bad(400, "request_line", "a request begins with a method");
  const std::size_t end = std::min(bytes.size(), max_bytes_);
  while (scanned_ < end) {
    const void* found = std::memchr(bytes.data() + scanned_, '\n', end - scanned_);
    if (found == nullptr) {
      scanned_ = end;
      break;
    }
    const std::size_t at = static_cast<std::size_t>(static_cast<const char*>(found) - bytes.data());
    if (at == size_ || bytes[at - 1] != '\r') return bad(400, "line_end", "lines of the head end with CR LF");
    const std::string_view line = bytes.substr(size_, at - 1 - size_);
    size_ = scanned_ = at + 1;
    if (line.empty() && has_request_line_) return Finish() ? Parsed::kDone : Parsed::kBad;
    if (!ParseLine(line)) return Parsed::kBad;
  }
  if (bytes.size() < max_bytes_) return Parsed::kMore;
  if (!has_request_line_) return bad(414, "header_size", "the target is too long");
  return bad(431, "header_size", "the header is too large");
}

bool HeadParser::ParseLine(std::string_view line) {
  if (has_request_line_) return ParseField(line);
  has_request_line_ = true;
  return ParseRequestLine(line);
}

bool HeadParser::ParseRequestLine(std::string_view line) {
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  if (first == line.npos || last == first) return Bad(400, "request_line", "a request line is: method target HTTP/1.1");
  head_.method = line.substr(0, first);
  const std::string_view version = line.substr(last + 1);
  if (!IsToken(head_.method)) return Bad(400, "request_line", "the method is not a word");
  if (version.size() != 8 || !version.starts_with("HTTP/") || !IsDigit(version[5]) || version[6] != '.' ||
      !IsDigit(version[7]))
    return Bad(400, "request_line", "a request line ends with HTTP/1.1");
  if (head_.method == "PRI") return Bad(400, "version", "HTTP/2 is not spoken here; use HTTP/1.1");
  if (version[5] != '1') return Bad(505, "version", "only HTTP/1.1 and HTTP/1.0 are spoken here");
  head_.http_1_0 = version[7] == '0';
  head_.keep_alive = !head_.http_1_0;
  if (IsAnyOf(head_.method, {"CONNECT", "OPTIONS", "TRACE"}))
    return Bad(405, "method", "this method is not allowed here");
  if (!IsAnyOf(head_.method, {"GET", "POST", "HEAD", "PUT", "PATCH", "DELETE"}))
    return Bad(501, "method", "this method is not known here");

  const std::string_view target = line.substr(first + 1, last - first - 1);
  const auto plain = [](char c) { return c > 0x20 && c < 0x7f && c != '#'; };
  if (target.empty() || target[0] != '/' || !std::all_of(target.begin(), target.end(), plain))
    return Bad(400, "target", "a target begins with / and holds printable ASCII without blanks and #");
  const std::size_t mark = std::min(target.find('?'), target.size());
  if (mark < target.size()) head_.query = target.substr(mark + 1);
  head_.path = target.substr(0, mark);
  return true;
}

bool HeadParser::ParseField(std::string_view line) {
  if (line[0] == ' ' || line[0] == '\t') return Bad(400, "folded", "a field on two lines is not accepted");
  const std::size_t colon = line.find(':');
  if (colon == line.npos || !IsToken(line.substr(0, colon)))
    return Bad(400, "field", "a header field is: name, colon without a blank before it, value");
  const std::string_view value = TrimBlanks(line.substr(colon + 1));
  if (std::any_of(value.begin(), value.end(), [](char c) { return IsControl(c) && c != '\t'; }))
    return Bad(400, "field", "a header field holds control bytes");
  if (fields_.size() == max_fields_) return Bad(431, "header_fields", "the header has too many fields");
  fields_.push_back({line.substr(0, colon), value});
  return TakeField(line.substr(0, colon), value);
}

// The fields that decide where a request ends and who sends it; all others are the handler's business.
bool HeadParser::TakeField(std::string_view name, std::string_view value) {
  const auto is = [name](std::string_view wanted) { return EqualIgnoringCase(name, wanted); };
  switch (name.size()) {
    case 4:
      if (!is("host")) return true;
      if (has_host_) return Bad(400, "host", "there is more than one Host");
      has_host_ = true;
      head_.host = value;
      return true;
    case 6:
      if (is("origin")) return TakeOnce(head_.origin, value);
      if (!is("expect")) return true;
      if (!EqualIgnoringCase(value, "100-continue")) return Bad(417, "expect", "only 100-continue can be expected");
      head_.expects_continue = !head_.http_1_0;
      return true;
    case 10:
      return is("connection") ? TakeConnection(value) : true;
    case 12:
      return is("content-type") ? TakeOnce(head_.content_type, value) : true;
    case 13:
      return is("authorization") ? TakeOnce(head_.authorization, value) : true;
    case 14:
      return is("content-length") ? TakeLength(value) : true;
    case 16:
      return is("content-encoding") ? TakeEncoding(value) : true;
    case 17:
      if (!is("transfer-encoding")) return true;
      if (has_encoding_) return Bad(400, "length", "there is more than one Transfer-Encoding");
      if (!EqualIgnoringCase(value, "chunked"))
        return Bad(501, "encoding", "the only Transfer-Encoding known here is chunked");
      has_encoding_ = head_.chunked = true;
      return true;
    default:
      return true;
  }
}

bool HeadParser::TakeEncoding(std::string_view value) {
  if (EqualIgnoringCase(value, "identity")) return true;
  const bool gzip = EqualIgnoringCase(value, "gzip") || EqualIgnoringCase(value, "x-gzip");
  if (!gzip || head_.gzip)
    return Bad(415, "encoding", "the only Content-Encoding known here is gzip, once; send it so, or without one");
  head_.gzip = true;
  return true;
}

bool HeadParser::TakeOnce(std::string_view& slot, std::string_view value) {
  if (value.empty()) return true;
  if (!slot.empty()) return Bad(400, "field", "a field that may come once came twice");
  slot = value;
  return true;
}

bool HeadParser::TakeLength(std::string_view value) {
  if (has_length_) return Bad(400, "length", "there is more than one Content-Length");
  if (value.empty() || value.size() > 18 || !std::all_of(value.begin(), value.end(), IsDigit))
    return Bad(400, "length", "Content-Length is a number of bytes");
  has_length_ = true;
  for (const char c : value) head_.content_length = head_.content_length * 10 + static_cast<unsigned>(c - '0');
  return true;
}

bool HeadParser::TakeConnection(std::string_view value) {
  while (!value.empty()) {
    const std::size_t comma = std::min(value.find(','), value.size());
    const std::string_view word = TrimBlanks(value.substr(0, comma));
    if (EqualIgnoringCase(word, "close")) head_.keep_alive = false;
    if (EqualIgnoringCase(word, "keep-alive") && head_.http_1_0) head_.keep_alive = true;
    value.remove_prefix(std::min(comma + 1, value.size()));
  }
  return true;
}

bool HeadParser::Finish() {
  if (has_length_ && has_encoding_)
    return Bad(400, "length", "Content-Length and Transfer-Encoding exclude each other");
  if (has_encoding_ && head_.http_1_0) return Bad(400, "length", "HTTP/1.0 has no Transfer-Encoding");
  if (!has_host_ && !head_.http_1_0) return Bad(400, "host", "a Host field is needed");
  head_.fields = fields_;
  return DecodePath();
}

bool HeadParser::DecodePath() {
  const auto refuse = [this](std::string_view text) { return Bad(400, "target", text); };
  if (head_.path.find('%') != head_.path.npos) {
    decoded_path_.clear();
    for (std::string_view rest = head_.path; !rest.empty(); rest.remove_prefix(1)) {
      char c = rest[0];
      if (c == '%') {
        const int high = rest.size() > 2 ? HexDigit(rest[1]) : -1;
        const int low = rest.size() > 2 ? HexDigit(rest[2]) : -1;
        if (high < 0 || low < 0) return refuse("after % in the path come two hexadecimal digits");
        c = static_cast<char>(high * 16 + low);
        // What would mean something else to whoever decodes or splits the path once more.
        if (IsControl(c) || c == '/' || c == '%') return refuse("the path holds an escape that is not accepted");
        rest.remove_prefix(2);
      }
      decoded_path_ += c;
    }
    head_.path = decoded_path_;
  }
  if (head_.path.find('\\') != head_.path.npos) return refuse("the path holds a backslash");
  if (head_.path.find("..") != head_.path.npos) return refuse("the path holds ..");
  return true;
}

}  // namespace freshet::serve
