#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace freshet::fabric::sim {

// One thing that goes wrong in a simulated world, and when.
struct Fault {
  enum class Kind {
    kCrash,       // the process ends, and its connections with it; perhaps it is started again after a while
    kPowerOff,    // the machine is gone: nothing is heard of it any more
    kPause,       // nothing of it runs, for a while
    kPartition,   // nothing gets from `ranks` to `others` (nor back, unless one_way), for a while or for ever
    kDelay,       // what does takes longer
    kDisconnect,  // the connections between the two end
    kSlow,        // computing takes longer
    kDiskFull,    // nothing can be written, for a while or for ever
    kTornWrite,   // the next write is cut short by a crash
    kClockJump,   // what it takes for the time of day jumps
  };
  static constexpr base::Clock::Duration kForEver = base::Clock::Duration::max();

  Kind kind = Kind::kCrash;
  std::vector<int> ranks = {};
  std::vector<int> others = {};
  bool one_way = false;
  base::Clock::Duration at{0};
  base::Clock::Duration lasts = kForEver;
  base::Clock::Duration by{0};  // kDelay, kClockJump
  double times = 1;             // kSlow

  std::string ToText() const;  // as ParseFaults reads it
};

// A plan: `crash rank=3 at=2.5s; partition 0-3|4-7 from=4s for=2s`. Times have a unit (us, ms, s, min); members are
// numbers, lists and ranges (0,2,5-7); A|B is between both, A>B one way only. kInvalid names what is wrong and where.
//
//   crash rank=R at=T [for=D]  power-off rank=R at=T      pause rank=R at=T for=D      torn-write rank=R at=T
//   partition A|B at=T [for=D] delay A|B by=D at=T [for=D] disconnect A|B at=T
//   slow rank=R times=X at=T [for=D]                      disk-full rank=R at=T [for=D] clock-jump rank=R by=D at=T
//
// `from=` may be said for `at=`.
Result<std::vector<Fault>> ParseFaults(std::string_view text, int size);

// One fault of any of these kinds, drawn from a seed, in a run of about that length.
Fault DrawFault(const std::vector<Fault::Kind>& kinds, std::uint64_t seed, int size, base::Clock::Duration length);

}  // namespace freshet::fabric::sim
