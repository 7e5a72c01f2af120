#include "strategy/server/synchrony.h"

#include <bit>
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
  if (text == "bsp" || text.empty()) return synchrony;
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

std::array<std::uint64_t, 3> Synchrony::Numbers() const {
  return {static_cast<std::uint64_t>(kind), staleness, std::bit_cast<std::uint64_t>(significance)};
}

Result<Synchrony> Synchrony::Of(std::span<const std::uint64_t> numbers) {
  if (numbers.size() == 3 && numbers[0] <= static_cast<std::uint64_t>(Kind::kBarrierless)) {
    const Synchrony synchrony{static_cast<Kind>(numbers[0]), numbers[1], std::bit_cast<double>(numbers[2])};
    if (auto read = Parse(synchrony.ToText()); read.ok() && read.value() == synchrony) return read;
  }
  return Error{Code::kCorrupt, "what says how far workers may drift apart (the synchrony) is damaged"};
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
