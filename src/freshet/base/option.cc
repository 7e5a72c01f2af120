#include "base/option.h"

#include "base/str.h"

namespace freshet {
namespace {

constexpr std::string_view kMark = "\u2063";  // the invisible separator

}  // namespace

std::string Option(std::string_view name) { return Str(kMark, name); }

std::string ShowOptions(std::string_view text, std::string_view before) {
  std::string out;
  while (true) {
    const std::size_t at = text.find(kMark);
    out += text.substr(0, at);
    if (at == std::string_view::npos) return out;
    out += before;
    text.remove_prefix(at + kMark.size());
  }
}

}  // namespace freshet
