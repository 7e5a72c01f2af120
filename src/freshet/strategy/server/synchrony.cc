#include "strategy/server/synchrony.h"

#include <charconv>
#include <cmath>

#include "base/option.h"
#include "base/str.h"

namespace freshet::strategy::server {
namespace {

template <class Number>
bool Read(std::string_view text, Number& to) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

Result<Synchrony> Synchrony::Parse(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const std::string_view value = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  Synchrony synchrony;
  if (text == "bsp") return synchrony;
  if (text == "bap") {
    synchrony.kind = Kind::kBarrierless;
    return synchrony;
  }
  if (name == "ssp" && Read(value, synchrony.staleness) && synchrony.staleness <= 1'000'000) {
    if (synchrony.staleness > 0) synchrony.kind = Kind::kStale;
    return synchrony;
  }
  if (name == "asp" && Read(value, synchrony.significance) && synchrony.significance >= 0 &&
      std::isfinite(synchrony.significance)) {
    synchrony.kind = Kind::kApproximate;
    return synchrony;
  }
  return Error{Code::kInvalid, Str(Option("synchrony"), ": found ", Quoted(text),
                                   ", expected bsp, ssp:CLOCKS (as ssp:3), asp:SIGNIFICANCE (as asp:0.01) or bap")};
}

std::string Synchrony::ToText() const {
  switch (kind) {
    case Kind::kBulk:
      return "bsp";
    case Kind::kStale:
      return Str("ssp:", staleness);
    case Kind::kApproximate:
      return Str("asp:", significance);
    case Kind::kBarrierless:
      return "bap";
  }
  return "";
}

}  // namespace freshet::strategy::server
