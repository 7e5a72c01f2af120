#include "model/network/description_guard.h"

#include <algorithm>
#include <utility>

namespace freshet::model::network::text {
namespace {

class Scan {
 public:
  explicit Scan(std::string_view toml) : left_(toml) {}

  Result<void> Run() {
    while (!left_.empty()) {
      const char c = left_[0], before = std::exchange(last_, c);
      if (c == '#') {
        Drop(left_.find('\n'));
      } else if (c == '"' || c == '\'') {
        if (std::string_view(" \t\n=[{,").find(before) == std::string_view::npos)
          return Wrong("found a quote in the middle of something");
        TRY(Quotes(c));
      } else {
        if (c != '\n' && c != '\r' && c != '\t' && (c < 0x20 || c > 0x7e))
          return Wrong("found a letter or byte that can only stand in quotes or comments");
        if (c == '\n') ++line_;
        Drop(1);
      }
    }
    return {};
  }

 private:
  Error Wrong(std::string_view what) const { return {Code::kInvalid, Str("network, line ", line_, ": ", what)}; }
  void Drop(std::size_t count) { left_.remove_prefix(std::min(count, left_.size())); }

  // To behind the closing quote, or to the end of the line when there is none: the parser will say so.
  Result<void> Quotes(char quote) {
    Drop(1);
    if (left_.size() >= 2 && left_[0] == quote && left_[1] == quote)
      return Wrong("strings of several lines (three quotes) are not used here");
    while (!left_.empty() && left_[0] != quote && left_[0] != '\n')
      Drop(quote == '"' && left_[0] == '\\' && left_.size() > 1 && left_[1] != '\n' ? 2 : 1);
    if (left_.starts_with(quote)) Drop(1);
    return {};
  }

  std::string_view left_;
  char last_ = '\n';
  std::size_t line_ = 1;
};

}  // namespace

Result<void> CheckForParser(std::string_view toml) {
  if (toml.starts_with("\xef\xbb\xbf")) toml.remove_prefix(3);  // what some editors put first
  return Scan(toml).Run();
}

}  // namespace freshet::model::network::text
