#pragma once

#include "fabric/collectives/collectives.h"

namespace freshet::fabric {

// How this member's clock differed from rank 0's at one moment.
struct ClockReading {
  base::Clock::Duration at{0};     // the moment, by this member's clock
  base::Clock::Duration ahead{0};  // its clock minus rank 0's
  base::Clock::Duration error{0};  // at most that wrong: half the time of the shortest question and answer
};

// Rank 0 asks each member several times what time it is, and takes the answer that came back fastest. All members call
// it; a rank 0 gets zeros.
//
// Blocking: until all have been asked. Failure: as the fabric's.
Result<ClockReading> CompareClocks(Collectives& collectives, const base::Clock& clock, int questions = 16);

// A moment of this member's clock by rank 0's, from two readings; between and beyond them clocks drift evenly.
base::Clock::Duration OnRankZero(const ClockReading& first, const ClockReading& second, base::Clock::Duration time);

}  // namespace freshet::fabric
