#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/membership/roster.h"

namespace freshet::fabric {

// What members tell each other to decide on the next generation.
struct MembershipMessage {
  enum class Kind : std::uint8_t {
    kJoin,      // I want in: `seats` has me
    kPrepare,   // who takes part in `ballot`?
    kPromise,   // I do; this is what I accepted before, and `seats` has what I have
    kAccept,    // let it be `roster`
    kAccepted,  // so it is, for me
    kRefused,   // no: I have promised `ballot`
    kCommit,    // `roster` is decided
  };
  Kind kind = Kind::kCommit;
  MemberId from = 0;
  std::uint64_t generation = 0;  // that is to be decided; of kCommit the one that is
  Ballot ballot = {}, accepted = {};
  Roster roster = {};
  std::vector<Seat> seats = {};
  std::vector<Proof> proofs = {};  // with kPrepare and kAccept: whose end is proved

  std::string ToText() const;  // a line, for traces
};

}  // namespace freshet::fabric
