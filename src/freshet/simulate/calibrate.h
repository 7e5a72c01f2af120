#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "fabric/collectives/collectives.h"
#include "simulate/calibration.h"
#include "simulate/subject.h"

namespace freshet::simulate {

// Measures what a batch costs who computes it with so many cores, for about `seconds`.
Result<StepCost> MeasureBatch(const model::Model& model, const data::Batch& batch, int cores, const base::Clock& clock,
                              double seconds);

// Measures what batches of so many rows cost a worker that has so many cores, while others do the same: `at_once` in all,
// or (0) as many as the machine has cores for. Takes about `seconds` for each.
Result<std::vector<MeasuredCosts::Point>> MeasureModel(const Subject& subject, const std::vector<std::size_t>& rows,
                                                       const std::vector<int>& cores, int at_once, base::Clock& clock,
                                                       double seconds);

// Measures how members of a group exchange, as rank 0 sees it: with another of its host, with one of another host where
// there are several, and how much longer messages take when a host has more workers than cores. All members call it; what
// rank 0 gets is what counts. kInvalid when there is only one member.
Result<void> MeasureExchange(fabric::Fabric& fabric, const base::Clock& clock, double seconds,
                             Calibration& calibration);

// Measures what codecs cost, in seconds for a byte of floats.
std::map<std::string, double, std::less<>> MeasureCodecs(const base::Clock& clock, double seconds);

}  // namespace freshet::simulate
