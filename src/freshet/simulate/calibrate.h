#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "fabric/collectives/collectives.h"
#include "simulate/calibration.h"
#include "simulate/subject.h"

namespace freshet::simulate {

// Measures what batches of so many rows cost a worker that has so many cores, while as many others as the machine has
// cores for do the same. Takes about `seconds` for each.
Result<std::vector<MeasuredCosts::Point>> MeasureModel(const Subject& subject, const std::vector<std::size_t>& rows,
                                                       const std::vector<int>& cores, base::Clock& clock,
                                                       double seconds);

// Measures how two workers exchange: latency, and what copying and adding cost. All members of the group call it.
Result<void> MeasureExchange(fabric::Collectives& collectives, const base::Clock& clock, double seconds,
                             fabric::sim::Platform& platform);

// Measures what codecs cost, in seconds for a byte of floats.
std::map<std::string, double, std::less<>> MeasureCodecs(const base::Clock& clock, double seconds);

}  // namespace freshet::simulate
