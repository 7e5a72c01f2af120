#pragma once

#include "base/clock.h"

namespace freshet::bench {

// The most floating-point operations a second that so many threads of this machine reach: multiply-adds in registers,
// for about a tenth of a second, by whichever width of vectors is faster. A multiply-add is two operations.
double PeakFlops(int threads, base::Clock& clock);

}  // namespace freshet::bench
