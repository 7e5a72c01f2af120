#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http/exchange.h"

namespace freshet::serve {

bool EqualIgnoringCase(std::string_view a, std::string_view b);
int HexDigit(char c);  // its value; -1 when it is none

// Why a request is refused, in constants: what the client is told, and a word for the metric.
struct Mistake {
  int status = 400;
  std::string_view reason;
  std::string_view text;
};

enum class Parsed { kMore, kDone, kBad };

// What the head of a request says.
struct Head {
  std::string_view method;
  std::string_view path;  // percent-decoded
  std::string_view query;
  std::string_view host;
  std::string_view origin;
  std::string_view content_type;
  std::string_view authorization;
  std::span<const HeaderField> fields;
  std::uint64_t content_length = 0;
  bool chunked = false;
  bool gzip = false;  // the body is compressed
  bool expects_continue = false;
  bool keep_alive = true;
  bool http_1_0 = false;
};

// Reads the head of an HTTP/1.x request, strictly: what two implementations might read in two ways (a line ended by LF
// alone, a folded field, a length given twice) is refused, since such differences smuggle requests past proxies.
//
// Threads:   one at a time.
// Ownership: views point into the bytes given to Parse, which the caller keeps in place until Reset, or into the
// parser.
class HeadParser {
 public:
  HeadParser(std::size_t max_bytes, std::size_t max_fields) : max_bytes_(max_bytes), max_fields_(max_fields) {}

  // `bytes` begins where the request begins and has grown since the last call.
  Parsed Parse(std::string_view bytes);
  void Reset();

  // After kDone.
  const Head& head() const { return head_; }
  std::size_t size() const { return size_; }  // of the head, with its empty line
  // After kBad.
  const Mistake& mistake() const { return mistake_; }

 private:
  // These say whether to go on; when not, mistake_ says why.
  bool Bad(int status, std::string_view reason, std::string_view text);
  bool ParseLine(std::string_view line);
  bool ParseRequestLine(std::string_view line);
  bool ParseField(std::string_view line);
  bool TakeField(std::string_view name, std::string_view value);
  bool TakeLength(std::string_view value);
  bool TakeConnection(std::string_view value);
  bool TakeEncoding(std::string_view value);
  bool TakeOnce(std::string_view& slot, std::string_view value);
  bool Finish();
  bool DecodePath();

  const std::size_t max_bytes_;
  const std::size_t max_fields_;
  Head head_;
  Mistake mistake_;
  std::vector<HeaderField> fields_;
  std::string decoded_path_;  // when it is not the same as in the bytes
  std::size_t size_ = 0;      // bytes in lines that are done
  std::size_t scanned_ = 0;   // bytes known to hold no further end of line
  bool has_request_line_ = false;
  bool has_length_ = false;
  bool has_encoding_ = false;  // Transfer-Encoding
  bool has_host_ = false;
};

}  // namespace freshet::serve
