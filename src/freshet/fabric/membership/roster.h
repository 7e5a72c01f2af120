#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace freshet::fabric {

// One life of a worker's process, drawn when it starts: one that is started again is another member.
using MemberId = std::uint64_t;

// A member as the others know it, and what it has.
struct Seat {
  MemberId id = 0;
  std::string address = {};  // where it can be reached
  std::string name = {};     // what people call it: "rank 3 on b"
  std::uint64_t step = 0;    // the last one it has finished
  std::uint64_t tier = 0;    // members of a lower one come first in the next roster
  bool operator==(const Seat&) const = default;
};

// Who makes up a group, in the order of ranks. Each generation is decided once.
struct Roster {
  std::uint64_t generation = 0;  // 0: none was decided yet
  std::vector<Seat> seats = {};
  bool operator==(const Roster&) const = default;

  bool Has(MemberId id) const {
    return std::any_of(seats.begin(), seats.end(), [&](const Seat& seat) { return seat.id == id; });
  }
};

// Names one attempt to decide the next generation; a later one has a higher round, or the same and another proposer.
struct Ballot {
  std::uint64_t round = 0;
  MemberId by = 0;
  auto operator<=>(const Ballot&) const = default;
};

// What a member has said about the generation after its own. It stands by that: a process writes it where it survives its
// end (with its agent) before anybody hears of it.
struct Vote {
  Ballot promised = {};  // it takes part in none below
  Ballot accepted = {};  // round 0: in none yet
  Roster value = {};     // of that
  bool operator==(const Vote&) const = default;
};
struct Testimony {
  Roster committed = {};
  Vote next = {};
  bool operator==(const Testimony&) const = default;
};

// That a member has ended, as its own agent saw it, and what it had said. Everything else (silence, a closed connection)
// is suspicion.
struct Proof {
  MemberId id = 0;
  std::string how = {};  // "killed by signal 9"
  Testimony testimony = {};
};

}  // namespace freshet::fabric
