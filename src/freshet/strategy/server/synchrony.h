#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace freshet::strategy::server {

// How far workers of a parameter server may drift apart. A worker's clock counts the updates it has pushed.
struct Synchrony {
  enum class Kind : std::uint64_t {  // without gaps between members: it travels as it is
    kBulk,         // bsp: the pushes of one clock are one update, and nobody reads before all have pushed
    kStale,        // ssp:S: every push is an update; reads have all of those more than S clocks old
    kApproximate,  // asp:V: as barrierless, but rows that would move by less than V of their length wait in the worker,
                   // and the worker waits for no answer, as long as it has something to read
    kBarrierless,  // bap: every push is an update, and nobody waits for anybody
  };
  Kind kind = Kind::kBulk;
  std::uint64_t staleness = 0;  // ssp
  double significance = 0;      // asp: in the beginning; falls with the square root of the clock

  // bsp, ssp:3, asp:0.01, bap. What is stale by nothing is bulk; so it is where nothing is said.
  static Result<Synchrony> Parse(std::string_view text);
  std::string ToText() const;

  // As three numbers, to be kept, and back: kCorrupt for what is none.
  std::array<std::uint64_t, 3> Numbers() const;
  static Result<Synchrony> Of(std::span<const std::uint64_t> numbers);

  bool operator==(const Synchrony&) const = default;

  bool bulk() const { return kind == Kind::kBulk; }
  bool bounded() const { return bulk() || kind == Kind::kStale; }  // workers may have to wait for each other
  // For how many steps what was read may be used.
  std::uint64_t MostFetchEvery() const {
    return kind == Kind::kBulk ? 1 : kind == Kind::kStale ? staleness + 1 : UINT64_MAX;
  }
  // Which clock must be complete for a worker that is at `clock` to read.
  std::uint64_t Needs(std::uint64_t clock) const {
    if (bulk()) return clock;
    return kind == Kind::kStale && clock > staleness ? clock - staleness : 0;
  }
};

}  // namespace freshet::strategy::server
