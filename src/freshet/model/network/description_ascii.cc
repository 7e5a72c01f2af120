#include "model/network/description_ascii.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace freshet::model::network::text {
namespace {

class Scan {
 public:
  explicit Scan(std::string_view toml) : left_(toml) {}

  Result<std::string> Run() {
    while (!left_.empty()) {
      const char c = left_[0];
      if (c == '#') {
        left_.remove_prefix(std::min(left_.find('\n'), left_.size()));
      } else if (c == '"' || c == '\'') {
        TRY(Quotes(c));
      } else if (IsAscii(c)) {
        Take(1);
      } else {
        return Wrong("letters beyond ASCII can only stand in double quotes and comments");
      }
    }
    return std::move(out_);
  }

 private:
  Error Wrong(std::string_view what) const { return {Code::kInvalid, Str("network, line ", line_, ": ", what)}; }
  static bool IsAscii(char c) { return static_cast<unsigned char>(c) < 0x80; }

  void Take(std::size_t count) {
    if (left_[0] == '\n') ++line_;
    out_ += left_.substr(0, count);
    left_.remove_prefix(std::min(count, left_.size()));
  }

  // To behind the closing quote, or to the end of the line when there is none: the parser will say so.
  Result<void> Quotes(char quote) {
    Take(1);
    if (left_.size() >= 2 && left_[0] == quote && left_[1] == quote)
      return Wrong("strings of several lines (three quotes) are not used here");
    while (!left_.empty() && left_[0] != quote && left_[0] != '\n') {
      if (!IsAscii(left_[0])) {
        if (quote == '\'') return Wrong("letters beyond ASCII need double quotes");
        TRY(Escape());
      } else {
        Take(left_[0] == '\\' && quote == '"' && left_.size() > 1 && IsAscii(left_[1]) && left_[1] != '\n' ? 2 : 1);
      }
    }
    if (left_.starts_with(quote)) Take(1);
    return {};
  }

  // One letter, as UTF-8 has it, to \U and eight digits.
  Result<void> Escape() {
    const auto first = static_cast<unsigned char>(left_[0]);
    const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    std::uint32_t letter = first & (0x7fu >> bytes);
    bool good = first >= 0xc2 && first <= 0xf4 && left_.size() >= bytes;
    for (std::size_t i = 1; good && i < bytes; ++i) {
      const auto next = static_cast<unsigned char>(left_[i]);
      good = (next & 0xc0) == 0x80;
      letter = letter << 6 | (next & 0x3fu);
    }
    if (!good) return Wrong("found bytes that are not UTF-8");
    out_ += "\\U";
    for (int digit = 7; digit >= 0; --digit) out_ += "0123456789abcdef"[letter >> (4 * digit) & 15];
    left_.remove_prefix(bytes);
    return {};
  }

  std::string_view left_;
  std::string out_;
  std::size_t line_ = 1;
};

}  // namespace

Result<std::string> ToAscii(std::string_view toml) {
  if (toml.starts_with("\xef\xbb\xbf")) toml.remove_prefix(3);  // what some editors put first
  return Scan(toml).Run();
}

}  // namespace freshet::model::network::text
